# SPDX-License-Identifier: GPL-2.0-or-later
# Vagrant's commands, extended: a lab's name stands for its three machines, requirements are checked before anything is
# made, and libvirt runs when it is needed.

require "fileutils"
require "open3"

require_relative "at_once"
require_relative "lab_machines"
require_relative "ports"
require_relative "record"
require_relative "saved_machine"
require_relative "seed"

module FirewallLab
  # Vagrant's commands all find their machines in one method, and parse their arguments in another.
  module LabNames
    ALL_MACHINES = %w[up halt destroy status reload suspend resume provision].freeze

    class << self
      attr_accessor :project
    end

    # `vagrant up` alone would start no machine, and not say which labs there are.
    def parse_options(*)
      super.tap { |words| raise known("vagrant up needs the name of a lab") if words&.empty? && fwlab_command == "up" }
    end

    def with_target_vms(names = nil, options = nil, &block)
      Libvirt.join_driver
      names = Array(names).flat_map { |name| expand(name.to_s) }
      if %w[up reload].include?(fwlab_command) && !@fwlab_prepared
        states = {}
        super(names, options) { |machine| states[machine.name.to_s] = machine.state.id }
        machines = LabNames.project.machines.select { |m| states.key?(m.name) }
        Start.new(LabNames.project).prepare(machines, states, restarts: fwlab_command == "reload")
        @fwlab_prepared = true
      end
      super(names, options, &block)
    end

    private

    # "VagrantPlugins::CommandUp::Command" -> "up"
    def fwlab_command = self.class.name[/Command(\w+)::/, 1].to_s.downcase

    def expand(name)
      project = LabNames.project
      meant = project.labs.select { |lab| lab.start_with?("#{name}-") } # lab03 stands for lab03-ipset
      name = meant.first if meant.one?
      return [name] if project.machines.none? { |machine| machine.lab == name } && !name.match?(/\Alab\d/)
      return project.machines.select { |m| m.lab == name }.map(&:name) if project.labs.include?(name) && all_machines?
      return [name] if project.machines.any? { |machine| machine.name == name }

      raise known("there is no lab or machine #{name}")
    end

    def all_machines? = ALL_MACHINES.include?(fwlab_command)

    def known(message)
      labs = LabNames.project.labs
      near = labs.find { |lab| message[/lab\d+/] == lab[/lab\d+/] } || labs.first || "LAB"
      Problem.new("#{message}; the labs are: #{labs.join(', ')}", "vagrant up #{near}")
    end
  end

  # Checks and makes what machines need before they start, cheapest first.
  class Start
    def initialize(project)
      @project = project
    end

    # `states`: Vagrant's state of each machine, by name. Machines that run already need nothing, unless it `restarts`
    # them: then they read their new seeds.
    def prepare(machines, states, restarts: false)
      machines.map(&:lab).uniq.each do |lab|
        @project.dut_systems.check(lab)
        @project.link_choice.check(lab)
      end
      running = machines.select { |machine| states[machine.name] == :running }
      running.each { |machine| Seed.new(@project, machine).write } if restarts
      machines = machines.select { |machine| %i[not_created shutoff].include?(states[machine.name]) }
      return if machines.empty?

      boxes_built(machines)
      Libvirt.remove_strays(@project, machines.select { |machine| states[machine.name] == :not_created })
      Ports.check(@project, machines)
      HostLinks.prepare(@project, machines)
      FirewallLab.at_once(*machines.map { |machine| -> { Seed.new(@project, machine).write } })
    end

    private

    def boxes_built(machines)
      lacking = machines.reject(&:box)
      missing = lacking.map { |machine| machine.node.fetch("image") }.uniq
      return if missing.empty?

      dut_box_built(lacking.first) if lacking.map(&:role) == ["dut"]
      raise Problem.new("boxes are not built (#{missing.join(', ')}): run `make boxes`", "make boxes")
    end

    # As in fwlab/testbed/dut_choice.py.
    def dut_box_built(dut)
      image, system = dut.node.values_at("image", "system")
      other = @project.dut_systems.needed(dut.lab).find { |name| name != system }
      hint = "packer/build #{image}"
      hint += "; or without it, on #{other} only: FWLAB_DUT=#{other} and the same command" if other
      raise Problem.new("#{dut.lab}: its DUT runs #{system}, and the box #{image} is not built", hint)
    end
  end

  # Starts libvirt where no service manager does, and stops it when no machine runs any more. Each command holds a
  # shared lock while it uses libvirt, so that no other command stops it.
  module Libvirt
    SCRIPT = File.expand_path("../host/libvirt", __dir__)
    MUTEX = Mutex.new

    def self.ready(uri)
      MUTEX.synchronize do
        return if @ready

        hold
        output, status = Open3.capture2e(SCRIPT, "start", uri)
        message, hint = output.strip.split(/\n\s*next: /, 2)
        raise Problem.new(message.to_s, hint.to_s) unless status.success?

        @ready = true
      end
    end

    # Called late: the provider is not loaded yet when the Vagrantfile is read.
    def self.join_driver
      require "vagrant-libvirt/driver"
      require "vagrant-libvirt/action"
      VagrantPlugins::ProviderLibvirt::Driver.prepend(Driver)
      require "fog/libvirt/models/compute/server"
      VagrantPlugins::ProviderLibvirt::Action::ShutdownDomain.prepend(Shutdown)
      VagrantPlugins::ProviderLibvirt::Action::CreateDomain.prepend(SavedMachine::Creation)
      Fog::Libvirt::Compute::Server.prepend(SavedMachine::Starting)
      require "vagrant/action/builtin/wait_for_communicator"
      Vagrant::Action::Builtin::WaitForCommunicator.prepend(SavedMachine::Greeting)
      require "vagrant/action/builtin/synced_folders"
      Vagrant::Action::Builtin::SyncedFolders.prepend(NoSharedFolders)
    rescue LoadError
      raise Problem.new("Vagrant's libvirt provider is missing", "provision/host/install")
    end

    # Removes what a killed Vagrant left behind under the names of `machines`, which it no longer knows. The prefix
    # belongs to this checkout, so nobody else uses them.
    def self.remove_strays(project, machines)
      ready(project.libvirt_uri)
      virsh = ["virsh", "--quiet", "--connect", project.libvirt_uri]
      defined, = Open3.capture2(*virsh, "list", "--all", "--name")
      machines.map { |machine| "#{project.prefix}#{machine.name}" }.intersection(defined.split).each do |name|
        Open3.capture2e(*virsh, "destroy", name)
        Open3.capture2e(*virsh, "undefine", name, "--remove-all-storage")
      end
    end

    def self.hold
      return if File.directory?("/run/systemd/system")

      folder = Process.uid.zero? ? "/run/fwlab" : "#{FirewallLab.user_cache}/fwlab/run" # as in provision/host/libvirt
      FileUtils.mkdir_p(folder)
      @lock = File.open("#{folder}/use.lock", File::RDWR | File::CREAT).tap { |lock| lock.flock(File::LOCK_SH) }
      owner = Process.pid
      at_exit do
        next unless Process.pid == owner

        @lock.close
        system(SCRIPT, "stop")
      end
    end

    # The provider's driver. The address is known (the forwarded port), so the guest is not asked for it: asking would
    # wake a DUT during a trial, and wait minutes for one that is saturated.
    module Driver
      def connection
        Libvirt.ready(@machine.provider_config.uri)
        super
      end

      def get_ipaddress(*) = LabNames.project.address

      # No machine here uses one of libvirt's networks. For an ordinary user, listing them would ask root's daemon.
      def list_all_networks = []

      # The provider checks them before it does anything. Those that the project makes come and go with the machines.
      def host_devices = LabNames.project.host_devices
    end
  end

  # Vagrant asks each guest whether it can keep a list of its shared folders. Without such folders, the connections that
  # this takes are a quarter of the time that three machines need to continue from their saved states.
  module NoSharedFolders
    def call(env) = synced_folders(env[:machine]).empty? ? @app.call(env) : super
  end

  # Vagrant evaluates the configuration of every machine to find the plug-ins that it names. Ours name none, and of 36
  # machines a command needs three.
  module NoMachinesPlugins
    def find_configured_plugins = vagrantfile.config.vagrant.plugins
  end

  # If a guest does not answer, `vagrant halt` and `reload` switch it off. The provider does so only if its wait for the
  # guest ends without an error, but its library ends the wait with one.
  module Shutdown
    def call(env)
      super
    rescue Fog::Errors::TimeoutError
      seconds = env[:machine].config.vm.graceful_halt_timeout
      env[:ui].warn("does not shut down within #{seconds} s: switching it off")
      env[:result] = false
      @app.call(env)
    end
  end

  # Hooks the above into Vagrant. Safe to call twice.
  def self.install(project)
    LabNames.project = project
    Seed.ensure_key(project.private_key)
    Vagrant::Plugin::V2::Command.prepend(LabNames)
    Vagrant::Environment.prepend(NoMachinesPlugins)
    Record.install
  end
end
