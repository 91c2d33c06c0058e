# SPDX-License-Identifier: GPL-2.0-or-later
# What the Vagrantfile needs to know about the project: its labs and, for each, its three machines as topology.yml
# describes them. Reads files and the environment; starts nothing and writes nothing.

require "digest"
require "json"
require "yaml"

require_relative "dut_systems"
require_relative "host_links"
require_relative "kinds"
require_relative "link_choice"
require_relative "nics"

module FirewallLab
  # An error the user can fix: what is wrong, and the next command. Vagrant prints it without a backtrace.
  class Problem < (defined?(Vagrant::Errors::VagrantError) ? Vagrant::Errors::VagrantError : StandardError)
    attr_reader :error_message, :status_code

    # `status_code`: Vagrant's exit code, as in fwlab/model/errors.py; 2 is bad usage.
    def initialize(message, hint, status_code = 2)
      @error_message = "#{message}\n  next: #{hint}"
      @status_code = status_code
      defined?(Vagrant) ? super() : super(@error_message)
    end
  end

  # Where a user's programs keep what they can make again.
  def self.user_cache(env = ENV) = env["XDG_CACHE_HOME"].to_s.empty? ? "#{Dir.home}/.cache" : env["XDG_CACHE_HOME"]

  # One end of a link, as its own machine sees it. `kind`: see links/. Ports are on the loopback address.
  # `role`: the machine's; `queues`: one for each of its CPUs; `accelerator`: its QEMU's. `device`: the NIC that the
  # project may make for the link on the host; `host`: what host.yml says about the link, nil if nothing. `nics`: those
  # that the machine has on the link beside the usual one (see nics.rb).
  LinkEnd = Struct.new(:name, :kind, :mtu, :near, :far, :behind_far, :local_port, :remote_port, :role, :queues,
                       :accelerator, :device, :host, :nics, keyword_init: true)

  # One machine of one lab. `name` is Vagrant's, `role` is the topology's.
  # `system`: see systems/.
  Machine = Struct.new(:name, :role, :lab, :node, :system, :ssh_port, :links, :box, :seed, :console,
                       keyword_init: true) do
    def management_device = "#{node.fetch('nic', 'eth')}#{links.length}"

    def several_nics? = links.any? { |link| link.nics.any? }

    # Whether the provider makes none of its links: they are handed over, or among QEMU's arguments.
    def without_network? = several_nics? || links.all? { |link| link.kind.respond_to?(:hand_over) }

    # [[:tcp, port, what it carries], ...]: everything the machine listens on.
    def ports
      [[:tcp, ssh_port, "SSH"]] +
        links.flat_map { |link| link.kind.ports(link).map { |protocol, port| [protocol, port, "link #{link.name}"] } }
    end
  end

  # The checkout at `root`, seen through the environment `env`.
  class Project
    # For QEMU's translated code (MiB), all of which is resident soon. The DUT runs more code than the others.
    TRANSLATION_CACHE = Hash.new(64).merge("dut" => 128).freeze
    MOST_CPUS = 64
    BOOT_TIMEOUT = 300
    # Of every box. Without it, libvirt takes the host's, and an arm64 host has no such machine type.
    ARCHITECTURE = "x86_64"
    # libvirt's word for each of QEMU's accelerators.
    DRIVERS = { "tcg" => "qemu", "kvm" => "kvm" }.freeze
    attr_reader :root, :topology, :link_kinds, :link_choice, :testbeds, :dut_systems

    def initialize(root, env = ENV)
      @root = File.realpath(root)
      @env = env.to_h.reject { |_, value| value.empty? } # an empty variable counts as unset, as in fwlab
      @topology = YAML.safe_load(File.read(File.join(@root, "topology.yml")))
      @link_kinds = Kinds.new(@root, "links")
      @link_choice = LinkChoice.new(@root, @link_kinds, @topology.fetch("links"), @env)
      @testbeds = Kinds.new(@root, "testbeds")
      @systems = Kinds.new(@root, "systems")
      @dut_systems = DutSystems.new(@root, @topology.dig("nodes", "dut"), @env)
    end

    def labs = Dir.glob("labs/lab[0-9][0-9]-*/", base: @root).map { |path| File.basename(path) }.sort

    def machines = @machines ||= labs.flat_map { |lab| machines_of(lab) }

    # Tells this checkout's machines and seeds from those of every other checkout on this host.
    def key = Digest::SHA256.hexdigest(@root)[0, 8]

    def prefix = "fwlab-#{key}-"

    def private_key = File.join(@root, ".fwlab", "ssh", "id_ed25519")

    # As in fwlab/host/environment.py.
    def cache
      own = Process.uid.zero? ? "/var/cache/fwlab" : File.join(FirewallLab.user_cache(@env), "fwlab")
      File.absolute_path(@env.fetch("FWLAB_CACHE", own))
    end

    # QEMU's accelerator: kvm only where the caller found that it works.
    def accelerator
      value = @env.fetch("FWLAB_ACCEL", "tcg")
      return value if DRIVERS.key?(value)

      renamed = value == "qemu" ? " (qemu is now called tcg)" : ""
      raise Problem.new("FWLAB_ACCEL=#{value}: must be tcg or kvm#{renamed}", "export FWLAB_ACCEL=tcg")
    end

    # The testbed for new machines.
    def testbed
      name = @env.fetch("FWLAB_TESTBED", "virtual")
      @testbeds[name] || raise(
        Problem.new("FWLAB_TESTBED=#{name}: unknown testbed; there are: #{@testbeds.names.sort.join(', ')}",
                    "export FWLAB_TESTBED=virtual")
      )
    end

    # Whether new machines continue from a saved state (saved_machine.rb).
    def saved_machines?
      value = @env.fetch("FWLAB_SAVED", "yes")
      return value == "yes" if %w[yes no].include?(value)

      raise Problem.new("FWLAB_SAVED=#{value}: must be yes or no", "export FWLAB_SAVED=no")
    end

    # libvirt's driver for the machine.
    def driver(machine) = DRIVERS.fetch(accelerator_of(machine.role))

    # The QEMU that runs the DUT in place of this host's own, a program's absolute path; nil: the host's own.
    def dut_qemu
      path = @env["FWLAB_DUT_QEMU"]
      return path if path.nil? || (path.start_with?("/") && File.file?(path) && File.executable?(path))

      raise Problem.new("FWLAB_DUT_QEMU=#{path}: not the absolute path of a program", "unset FWLAB_DUT_QEMU")
    end

    # The NICs of this host that links are attached to. Some are made only when machines start.
    def host_devices
      ends = machines.flat_map(&:links)
      ends.map { |link| link.kind.host_device(link) if link.kind.respond_to?(:host_device) }.compact.uniq
    end

    def libvirt_uri = @env.fetch("FWLAB_LIBVIRT_URI", Process.uid.zero? ? "qemu:///system" : "qemu:///session")

    # QEMU options that libvirt cannot express: management on the loopback address, and what the testbed needs.
    def qemu_args(machine)
      board = @topology.fetch("machine")
      forward = "hostfwd=tcp:#{address}:#{machine.ssh_port}-#{board.fetch('management_address').split('/').first}:22"
      args = ["-netdev", "user,id=management,net=#{board.fetch('management_network')},restrict=on,#{forward}",
              "-device", "virtio-net-pci,netdev=management,addr=#{format('0x%x', board.fetch('management_pci_slot'))}"]
      # A full ring must last for one slice in which a throttled DUT runs.
      args += ["-global", "virtio-net-pci.rx_queue_size=#{board.fetch('receive_ring')}"]
      # Nobody boots from the network. Without the NICs' boot code a machine starts sooner.
      args += ["-global", "virtio-net-pci.romfile="]
      # TCG leaves out the barriers of a guest with one CPU (QEMU commit c914d46d0a64 says why that is wrong), so a
      # notification can be lost. A Linux DUT keeps the indexes: its figures were measured with them.
      args += Nics::UNINDEXED if !dut?(machine) && driver(machine) == "qemu"
      args += Nics.arguments(board, machine.links, address) if machine.several_nics?
      args += machine.links.map(&:kind).uniq.flat_map { |kind| link_arguments(kind) }
      args += machine.system::QEMU_ARGUMENTS
      dut?(machine) ? args + testbed.dut_arguments(@topology) : args
    end

    # The name of a CPU feature that libvirt reads as an XML element with a child: QEMU's cache of translated code.
    def translation_cache(machine)
      size = TRANSLATION_CACHE[machine.role]
      driver(machine) == "qemu" ? ["tcg><tb-cache unit='MiB'>#{size}</tb-cache></tcg><pae"] : ["pae"]
    end

    def address = @topology.fetch("ports").fetch("address")

    # How long `vagrant up` waits for a machine to let it in (s).
    def boot_timeout
      seconds = Integer(@env.fetch("FWLAB_BOOT_TIMEOUT", BOOT_TIMEOUT.to_s), 10)
      raise ArgumentError unless seconds.positive?

      seconds
    rescue ArgumentError
      raise Problem.new("FWLAB_BOOT_TIMEOUT=#{@env['FWLAB_BOOT_TIMEOUT']} is not a number of seconds",
                        "export FWLAB_BOOT_TIMEOUT=#{BOOT_TIMEOUT}")
    end

    # So many seconds, or as many times more as `vagrant up` waits longer than usual (as `patience` in
    # fwlab/host/environment.py).
    def seconds(usual) = [usual, usual * boot_timeout / BOOT_TIMEOUT].max

    def memory_mib(machine) = with_trex(machine).fetch("memory_mib") { machine.node.fetch("memory_mib") }

    def cpu_model(machine) = with_trex(machine).fetch("cpu_model") { @topology.fetch("machine").fetch("cpu_model") }

    private

    def machines_of(lab)
      @topology.fetch("nodes").map do |role, usual|
        name = role == "dut" ? lab : "#{lab}-#{role}"
        node = { "system" => "linux", **usual }
        node = dut_node(node, @dut_systems.of(lab)).merge("cpus" => dut_cpus(usual)) if role == "dut"
        Machine.new(name: name, role: role, lab: lab, node: node, system: system(node.fetch("system")),
                    links: links_of(role, lab, node),
                    ssh_port: port("ssh_base", lab[3, 2].to_i, node.fetch("ssh_offset")),
                    box: box(node.fetch("image")), seed: File.join(cache, "seeds", key, "#{name}.iso"),
                    console: File.join(@root, ".fwlab", "console", "#{name}.log"))
      end
    end

    # The DUT's node if it runs `system`.
    def dut_node(usual, system)
      other = usual.fetch("other_systems", {})[system]
      other ? usual.merge(other, "system" => system) : usual
    end

    # CPUs of new DUTs: those of topology.yml, or what is asked for, as far as the testbed can have it.
    def dut_cpus(usual)
      wanted = @env["FWLAB_DUT_CPUS"] or return usual.fetch("cpus")
      count = Integer(wanted, 10, exception: false)
      unless count&.between?(1, MOST_CPUS)
        raise Problem.new("FWLAB_DUT_CPUS=#{wanted} is not a number of CPUs from 1 to #{MOST_CPUS}",
                          "export FWLAB_DUT_CPUS=4")
      end
      testbed.const_defined?(:MOST_CPUS, false) ? [count, testbed::MOST_CPUS].min : count
    end

    def system(name)
      @systems[name] || raise(
        Problem.new("topology.yml: no node runs #{name}; there are: #{@systems.names.sort.join(', ')}",
                    "fix topology.yml")
      )
    end

    def links_of(role, lab, node)
      number = lab[3, 2].to_i
      kinds = @link_choice.of(lab)
      hubs = kinds.values.all? { |kind| @link_kinds[kind]::INTERFACE == Nics::CARRIER }
      nics = role == "dut" && node["system"] == "linux" && hubs ? Nics.needed(@root, lab) : []
      mine = @topology.fetch("links").each_with_index.select { |(_, link), _| link.fetch("ends").key?(role) }
      mine.map do |(name, link), index|
        far_role = link["ends"].keys.find { |other| other != role }
        near, far = link["ends"].values_at(role, far_role)
        near = near.merge("dev" => near["dev"].sub(/\A[a-z]+/, node["nic"])) if node.key?("nic")
        LinkEnd.new(name: name, kind: @link_kinds[kinds.fetch(name)], mtu: link["mtu"], near: near, far: far,
                    behind_far: link.dig("behind", far_role) || [],
                    local_port: port("link_base", number, near["port_offset"]),
                    remote_port: port("link_base", number, far["port_offset"]), role: role,
                    queues: node.fetch("cpus"), accelerator: accelerator_of(role),
                    device: HostLinks.device(key, lab, index), host: HostLinks.file(@root, kinds.fetch(name))[name],
                    nics: nics)
      end
    end

    # QEMU's arguments for all NICs of a machine with links of this kind.
    def link_arguments(kind) = kind.const_defined?(:QEMU_ARGUMENTS, false) ? kind::QEMU_ARGUMENTS : []

    # Only the DUT depends on the testbed.
    def accelerator_of(role) = role == "dut" ? testbed.dut_accelerator(self) : accelerator

    def dut?(machine) = machine.role == "dut"

    def port(base, number, offset)
      ports = @topology.fetch("ports")
      ports.fetch(base) + ports.fetch("per_lab") * number + offset + Integer(@env.fetch("FWLAB_PORT_OFFSET", "0"))
    rescue ArgumentError
      raise Problem.new("FWLAB_PORT_OFFSET=#{@env['FWLAB_PORT_OFFSET']} is not a whole number",
                        "export FWLAB_PORT_OFFSET=100")
    end

    # The box built from the image, or nil before `make boxes`.
    def box(image) = images.dig(image, "box")

    # Memory and CPU instead of the usual ones if the image contains TRex.
    def with_trex(machine)
      images.dig(machine.node.fetch("image"), "trex") ? machine.node.fetch("with_trex", {}) : {}
    end

    def images
      @images ||= JSON.parse(File.read(File.join(@root, ".fwlab", "images.json")))
    rescue Errno::ENOENT, JSON::ParserError
      {}
    end
  end
end
