# SPDX-License-Identifier: GPL-2.0-or-later
# Vagrant's plug-in for the Firewall Performance Lab, loaded by the Vagrantfile. Python decides (fwlab/machines); this
# is what only Vagrant's own process can do: register the provider, hook into its actions, and read a lab's name as
# that of its three machines.

return if defined?(FirewallLab::Plugin) # by the Vagrantfile of another checkout, whose machine is used by its ID

require "fileutils"
require "json"
require "open3"

# Vagrant cannot join a path with other letters than ASCII's to its own texts where the locale is C, or one that the host
# does not have. Python reads such paths as UTF-8 in any locale.
unless Encoding.default_external == Encoding::UTF_8 || [Dir.pwd, Dir.home, __dir__].all?(&:ascii_only?) ||
       ENV["LC_ALL"] == "C.UTF-8"
  exec({ "LC_ALL" => "C.UTF-8" }, "vagrant", *ARGV)
end

module FirewallLab
  # An error that the user can fix: what is wrong, and the next command. Vagrant prints it without a backtrace.
  # `status_code`: Vagrant's exit code, as in fwlab/model/errors.py.
  class Problem < Vagrant::Errors::VagrantError
    attr_reader :error_message, :status_code

    def initialize(message, hint, status_code = 2)
      @error_message = "#{message}\n  next: #{hint}"
      @status_code = status_code
      super()
    end
  end

  # Vagrant and its libvirt provider as they were tried together. Hooks name classes of the provider, so another one may
  # differ; the oldest is what they need.
  module Versions
    TRIED = { "2.3.4" => "0.11.2", "2.3.8.dev" => "0.12.2" }.freeze
    OLDEST_PROVIDER = "0.11.2"

    # The provider's version. Raises Problem if it is missing.
    def self.provider
      require "vagrant-libvirt/version"
      VagrantPlugins::ProviderLibvirt.get_version.strip
    rescue LoadError
      raise Problem.new("Vagrant's libvirt provider is missing", "provision/host/install")
    end

    # A warning for versions that were not tried, or nil. Raises Problem if the provider is too old.
    def self.warning(vagrant, provider)
      if Gem::Version.new(provider) < Gem::Version.new(OLDEST_PROVIDER)
        raise Problem.new("vagrant-libvirt #{provider} is too old: #{OLDEST_PROVIDER} or newer is needed",
                          "provision/host/install")
      end
      return if TRIED[vagrant] == provider

      tried = TRIED.map { |pair| pair.join(" with ") }.join(", ")
      "Vagrant #{vagrant} with vagrant-libvirt #{provider} was not tried with this project (tried: #{tried})"
    end
  end

  # What `fwlab machines plan` says about one checkout, and calls of its other commands.
  class Plan
    @plans = {}

    # The plan of the checkout at `root`. Raises Problem.
    def self.at(root) = @plans[File.realpath(root)] ||= new(File.realpath(root))

    # The plan of an environment of Vagrant's; nil if its Vagrantfile is not of such a checkout.
    def self.of(environment) = environment.root_path && @plans[environment.root_path.realpath.to_s]

    def initialize(root)
      @root = root
      @ready, @started = [], []
      @mutex = Mutex.new # Vagrant starts machines in threads
      @data = JSON.parse(fwlab("plan"), symbolize_names: true)
    end

    def [](name) = @data.fetch(name)

    # By name, which is a string.
    def machines = @machines ||= @data.fetch(:machines).transform_keys(&:to_s)

    # The machines that Vagrant has made; without any, no names, which mean all of them.
    def made(data) = machines.keys.select { |name| data.join("machines", name, "libvirt", "id").exist? }

    # Does what these machines need before they start, once in a process. Raises Problem.
    def prepare(names, restart: false)
      @mutex.synchronize do
        names -= @ready
        next if names.empty?

        Libvirt.ready(self)
        fwlab("prepare", *("--restart" if restart), *names)
        @ready += names
      end
    end

    # The labs that a command starts.
    attr_accessor :started

    # Who measures with this lab's machines, in words, or nil. A session locks the file, and says in it who it is
    # (fwlab/testbed/session_lock.py).
    def session(lab)
      File.open(File.join(@root, ".fwlab", lab, "session.lock")) do |file|
        next if file.flock(File::LOCK_EX | File::LOCK_NB)

        "`%<command>s` (pid %<pid>s, since %<since>s)" % JSON.parse(file.read, symbolize_names: true)
      end
    rescue JSON::ParserError, KeyError
      "another command"
    rescue SystemCallError
      nil
    end

    # What a command of fwlab.machines prints. Raises Problem with its error.
    def fwlab(*words)
      python = File.join(@root, ".venv", "bin", "python")
      raise Problem.new("there is no .venv in #{@root}", "make setup") unless File.executable?(python)

      output, errors, status = Open3.capture3(python, "-m", "fwlab.machines", *words, chdir: @root)
      return output if status.success?

      message, hint = errors.strip.split(/\n\s*next: /, 2)
      raise Problem.new(message.to_s, hint || "fwlab doctor", status.exitstatus || 1)
    end
  end

  # Starts libvirt where no service manager does, and stops it when no machine runs any more. Each command holds a
  # shared lock while it uses libvirt, so that no other command stops it.
  module Libvirt
    SCRIPT = File.expand_path("../host/libvirt", __dir__)
    MUTEX = Mutex.new

    def self.ready(plan)
      MUTEX.synchronize do
        return if @ready

        hold(plan[:libvirt_lock])
        output, status = Open3.capture2e(SCRIPT, "start", plan[:libvirt_uri])
        message, hint = output.strip.split(/\n\s*next: /, 2)
        raise Problem.new(message.to_s, hint.to_s) unless status.success?

        @ready = true
      end
    end

    def self.hold(path)
      return unless path

      FileUtils.mkdir_p(File.dirname(path))
      @lock = File.open(path, File::RDWR | File::CREAT).tap { |lock| lock.flock(File::LOCK_SH) }
      owner = Process.pid
      at_exit do
        next unless Process.pid == owner

        @lock.close
        system(SCRIPT, "stop")
      end
    end
  end

  # Vagrant's commands all find their machines in one method, and parse their arguments in another. It has no hook for
  # either, hence `prepend`.
  module LabNames
    ALL_MACHINES = %w[up halt destroy status reload suspend resume provision snapshot sshconfig].freeze
    # These would end what a session measures.
    ENDING = %w[halt destroy reload suspend snapshot].freeze

    # Without a name, these would do nothing and not say which labs there are.
    NAMED = %w[up ssh].freeze

    def parse_options(*)
      super.tap do |words|
        next unless words&.empty? && NAMED.include?(fwlab_command)

        raise known("vagrant #{fwlab_command} needs the name of a lab")
      end
    end

    def with_target_vms(names = nil, options = nil, &block)
      plan = fwlab_plan or return super

      warning = Versions.warning(Vagrant::VERSION, Versions.provider)
      @env.ui.warn(warning) if warning && fwlab_command == "up"
      names = Array(names).flat_map { |name| expand(name.to_s) }
      names = plan.made(@env.local_data_path) if names.empty? && ENDING.include?(fwlab_command)
      reject_while_measured(plan, names) if ENDING.include?(fwlab_command)
      if %w[up reload].include?(fwlab_command)
        plan.prepare(names & plan.machines.keys, restart: fwlab_command == "reload")
      end
      plan.started |= names.filter_map { |name| plan.machines.dig(name, :lab) } if fwlab_command == "up"
      super(names, options, &block)
    end

    private

    def reject_while_measured(plan, names)
      return if (@argv & %w[-f --force]).any? || self.class.name.end_with?("::List")

      chosen = names.empty? ? plan.machines : plan.machines.slice(*names)
      chosen.map { |_, machine| machine[:lab] }.uniq.each do |lab|
        holder = plan.session(lab) or next
        raise Problem.new("#{lab} is in use by #{holder}", "wait for it, or end it with Ctrl-C where it runs")
      end
    end

    def fwlab_plan = Plan.of(@env)

    # "VagrantPlugins::CommandUp::Command" -> "up"
    def fwlab_command = self.class.name[/Command(\w+)::/, 1].to_s.downcase

    def expand(name)
      labs, machines = fwlab_plan[:labs], fwlab_plan.machines
      meant = labs.select { |lab| lab.start_with?("#{name}-") } # lab03 is enough for lab03-ipset
      name = meant.first if meant.one?
      return machines.keys.select { |one| machines[one][:lab] == name } if labs.include?(name) && all?
      return [name] if machines.key?(name) || !name.match?(/\Alab\d/)

      raise known("there is no lab or machine #{name}")
    end

    def all? = ALL_MACHINES.include?(fwlab_command)

    def known(message)
      labs = fwlab_plan[:labs]
      near = labs.find { |lab| message[/lab\d+/] == lab[/lab\d+/] } || labs.first || "LAB"
      Problem.new("#{message}; the labs are: #{labs.join(', ')}", "vagrant up #{near}")
    end
  end

  # `vagrant up` ends with what to type.
  module Closing
    def batch(*)
      super.tap do
        Plan.of(self)&.started&.each { |lab| ui.info("#{lab} is up: `fwlab run #{lab}`, or `vagrant ssh #{lab}`") }
      end
    end
  end

  # Vagrant evaluates the configuration of every machine to find the plug-ins that it names. Ours name none, and of 36
  # machines a command needs three.
  module NoMachinesPlugins
    def find_configured_plugins = Plan.of(self) ? vagrantfile.config.vagrant.plugins : super
  end

  class Plugin < Vagrant.plugin("2")
    name "fwlab"
    description "The machines of the Firewall Performance Lab"

    # In place of the provider of the same name, which it extends.
    provider(:libvirt, parallel: true, box_optional: true) do
      require_relative "provider"
      Provider
    end

    STEPS = { before: %i[up reload], create: %i[up], halt: %i[halt reload], after: %i[up reload destroy] }.freeze
    STEPS.each do |step, actions|
      actions.each do |action|
        action_hook(:"fwlab_#{step}", :"machine_action_#{action}") { |hook| hooks.public_send(step, hook) }
      end
    end

    # Loaded when an action runs: the classes of the provider that they name are not there before.
    def self.hooks
      require_relative "actions"
      Actions
    end
  end

  Vagrant::Plugin::V2::Command.prepend(LabNames)
  Vagrant::Environment.prepend(NoMachinesPlugins)
  Vagrant::Environment.prepend(Closing)
end
