# SPDX-License-Identifier: GPL-2.0-or-later
# What a lab adds to Vagrant's commands: its name stands for its three machines, what a start needs is checked
# before anything is made, and libvirt is there when it is used.

require "open3"
require "socket"

require_relative "lab_machines"
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
        idle = []
        super(names, options) { |machine| idle << machine.name.to_s if %i[not_created shutoff].include?(machine.state.id) }
        Start.new(LabNames.project).prepare(LabNames.project.machines.select { |machine| idle.include?(machine.name) })
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

    def prepare(machines)
      return if machines.empty?

      boxes_built(machines)
      machines.each { |machine| machine.ports.each { |port| port_free(machine, *port) } }
      machines.each { |machine| Seed.new(@project, machine).write }
    end

    private

    def boxes_built(machines)
      missing = machines.reject(&:box).map { |machine| machine.node.fetch("image") }.uniq
      return if missing.empty?

      raise Problem.new("boxes are not built (#{missing.join(', ')}): run `make boxes`", "make boxes")
    end

    def port_free(machine, protocol, port, purpose)
      socket = protocol == :udp ? UDPSocket.new : nil
      socket ? socket.bind(@project.address, port) : (socket = TCPServer.new(@project.address, port))
    rescue Errno::EADDRINUSE
      raise Problem.new(
        "#{protocol} port #{@project.address}:#{port} (#{purpose} of #{machine.name}) is taken#{holder(protocol, port)}",
        "`export FWLAB_PORT_OFFSET=100` for this and every later command, or end what holds the port " \
        "(a lab of another checkout: `vagrant destroy #{machine.lab}` there)"
      )
    ensure
      socket&.close
    end

    # " by qemu-system-x86 (pid 123, fwlab-...-lab03-ipset)", as far as this user may see it.
    def holder(protocol, port)
      output, = Open3.capture2("ss", "-Hlnp", protocol == :udp ? "-u" : "-t", "sport = :#{port}")
      name, pid = output.match(/users:\(\("([^"]+)",pid=(\d+)/)&.captures
      guest = pid && File.read("/proc/#{pid}/cmdline")[/guest=([^,\0]+)/, 1]
      name ? " by #{name} (#{["pid #{pid}", guest].compact.join(', ')})" : ""
    rescue SystemCallError
      ""
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
      VagrantPlugins::ProviderLibvirt::Driver.prepend(Driver)
    rescue LoadError
      raise Problem.new("Vagrant's libvirt provider is missing", "provision/host/install")
    end

    def self.hold
      return unless Process.uid.zero? && !File.directory?("/run/systemd/system")

      FileUtils.mkdir_p("/run/fwlab")
      @lock = File.open("/run/fwlab/use.lock", File::RDWR | File::CREAT).tap { |lock| lock.flock(File::LOCK_SH) }
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
    end
  end

  # Joins the above to Vagrant; harmless when done twice.
  def self.install(project)
    LabNames.project = project
    Seed.ensure_key(project.private_key)
    Vagrant::Plugin::V2::Command.prepend(LabNames)
  end
end
