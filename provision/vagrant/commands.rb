# SPDX-License-Identifier: GPL-2.0-or-later
# What a lab adds to Vagrant's commands: its name stands for its three machines, what a start needs is checked
# before anything is made, and libvirt is there when it is used.

require "fileutils"
require "open3"

require_relative "lab_machines"
require_relative "ports"
require_relative "record"
require_relative "seed"

module FirewallLab
  # Vagrant's commands all find their machines in one method, and parse their words in another.
  module LabNames
    ALL_MACHINES = %w[up halt destroy status reload suspend resume provision].freeze

    class << self
      attr_accessor :project
    end

    # `vagrant up` alone would bring up no machine, and say so without telling which ones there are.
    def parse_options(*)
      super.tap { |words| raise known("vagrant up needs the name of a lab") if words&.empty? && fwlab_command == "up" }
    end

    def with_target_vms(names = nil, options = nil, &block)
      Libvirt.join_driver
      names = Array(names).flat_map { |name| expand(name.to_s) }
      if %w[up reload].include?(fwlab_command) && !@fwlab_prepared
        states = {}
        super(names, options) { |machine| states[machine.name.to_s] = machine.state.id }
        Start.new(LabNames.project).prepare(LabNames.project.machines.select { |m| states.key?(m.name) }, states)
        @fwlab_prepared = true
      end
      super(names, options, &block)
    end

    private

    # "VagrantPlugins::CommandUp::Command" -> "up"
    def fwlab_command = self.class.name[/Command(\w+)::/, 1].to_s.downcase

    def expand(name)
      project = LabNames.project
      return [name] if project.machines.none? { |machine| machine.lab == name } && !name.match?(/\Alab\d/)
      return project.machines.select { |m| m.lab == name }.map(&:name) if project.labs.include?(name) && all_machines?
      return [name] if project.machines.any? { |machine| machine.name == name }

      raise known("there is no lab or machine #{name}")
    end

    def all_machines? = ALL_MACHINES.include?(fwlab_command)

    def known(message)
      labs = LabNames.project.labs
      Problem.new("#{message}; the labs are: #{labs.join(', ')}", "vagrant up #{labs.first || 'LAB'}")
    end
  end

  # Everything that machines need before they start, in the order in which it is cheapest to find missing.
  class Start
    def initialize(project)
      @project = project
    end

    # `states`: Vagrant's state of each, by name. Those that hold their ports already need nothing.
    def prepare(machines, states)
      machines = machines.select { |machine| %i[not_created shutoff].include?(states[machine.name]) }
      return if machines.empty?

      boxes_built(machines)
      Libvirt.remove_strays(@project, machines.select { |machine| states[machine.name] == :not_created })
      Ports.check(@project, machines)
      machines.each { |machine| Seed.new(@project, machine).write }
    end

    private

    def boxes_built(machines)
      missing = machines.reject(&:box).map { |machine| machine.node.fetch("image") }.uniq
      return if missing.empty?

      raise Problem.new("boxes are not built (#{missing.join(', ')}): run `make boxes`", "make boxes")
    end
  end

  # libvirt, started where no service manager does it, and stopped again when no machine is left running.
  # Each command holds a shared lock while it uses it, so that none loses it under way.
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

    # Late, since the provider is not loaded yet when the Vagrantfile is read.
    def self.join_driver
      require "vagrant-libvirt/driver"
      require "vagrant-libvirt/action"
      VagrantPlugins::ProviderLibvirt::Driver.prepend(Driver)
      VagrantPlugins::ProviderLibvirt::Action::ShutdownDomain.prepend(Shutdown)
    rescue LoadError
      raise Problem.new("Vagrant's libvirt provider is missing", "provision/host/install")
    end

    # What a killed Vagrant left behind under the names of `machines`, which it does not know any more: the
    # prefix is this checkout's own, so nobody else misses it.
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

      folder = Process.uid.zero? ? "/run/fwlab" : "#{Dir.home}/.cache/fwlab/run" # as in provision/host/libvirt
      FileUtils.mkdir_p(folder)
      @lock = File.open("#{folder}/use.lock", File::RDWR | File::CREAT).tap { |lock| lock.flock(File::LOCK_SH) }
      owner = Process.pid
      at_exit do
        next unless Process.pid == owner

        @lock.close
        system(SCRIPT, "stop")
      end
    end

    # The provider's driver: the address is known (the forwarded port), so the guest is not asked for it. Asking
    # would wake a DUT in the middle of a trial, and wait for minutes for one that is saturated.
    module Driver
      def connection
        Libvirt.ready(@machine.provider_config.uri)
        super
      end

      def get_ipaddress(*) = LabNames.project.address

      # No machine here uses a network of libvirt's. Of an ordinary user, listing them would ask root's daemon.
      def list_all_networks = []
    end
  end

  # Where a guest does not answer, `vagrant halt` and `reload` switch it off. The provider would only do so where the
  # wait for it ended without an error, and its library ends the wait with one.
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

  # Joins the above to Vagrant; harmless when done twice.
  def self.install(project)
    LabNames.project = project
    Seed.ensure_key(project.private_key)
    Vagrant::Plugin::V2::Command.prepend(LabNames)
    Record.install
  end
end
