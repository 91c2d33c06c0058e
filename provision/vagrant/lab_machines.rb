# SPDX-License-Identifier: GPL-2.0-or-later
# What the Vagrantfile needs to know of the project: the labs that are there and, for each, its three machines
# as topology.yml describes them. Reads files and the environment; starts nothing and writes nothing.

require "digest"
require "json"
require "yaml"

module FirewallLab
  # A fault the user can mend: what is wrong, and the next command. Vagrant prints it without a backtrace.
  class Problem < (defined?(Vagrant::Errors::VagrantError) ? Vagrant::Errors::VagrantError : StandardError)
    attr_reader :error_message

    def initialize(message, hint)
      @error_message = "#{message}\n  next: #{hint}"
      defined?(Vagrant) ? super() : super(@error_message)
    end
  end

  # One end of a link, as its own machine sees it. Ports are UDP ports on the loopback address.
  LinkEnd = Struct.new(:name, :mtu, :queues, :near, :far, :behind_far, :local_port, :remote_port, keyword_init: true)

  # One machine of one lab. `name` is Vagrant's, `role` is the topology's.
  Machine = Struct.new(:name, :role, :lab, :node, :ssh_port, :links, :box, :seed, :console, keyword_init: true) do
    def management_device = "eth#{links.length}"

    # [[:tcp, port, what it carries], ...]: everything the machine listens on.
    def ports
      [[:tcp, ssh_port, "SSH"]] + links.map { |link| [:udp, link.local_port, "link #{link.name}"] }
    end
  end

  # The checkout at `root`, seen through the environment `env`.
  class Project
    TRANSLATION_CACHE_MIB = 128
    attr_reader :root, :topology

    def initialize(root, env = ENV)
      @root = File.realpath(root)
      @env = env.to_h.reject { |_, value| value.empty? } # set to nothing is not set, as for fwlab
      @topology = YAML.safe_load(File.read(File.join(@root, "topology.yml")))
    end

    def labs = Dir.glob("labs/lab[0-9][0-9]-*/", base: @root).map { |path| File.basename(path) }.sort

    def machines = @machines ||= labs.flat_map { |lab| machines_of(lab) }

    # Distinguishes this checkout's machines and seeds from those of every other one on the same host.
    def key = Digest::SHA256.hexdigest(@root)[0, 8]

    def prefix = "fwlab-#{key}-"

    def private_key = File.join(@root, ".fwlab", "ssh", "id_ed25519")

    def cache
      @env.fetch("FWLAB_CACHE") do
        Process.uid.zero? ? "/var/cache/fwlab" : File.join(@env.fetch("XDG_CACHE_HOME", "#{Dir.home}/.cache"), "fwlab")
      end
    end

    # kvm only where the caller found that it works; the virtual testbed's DUT never uses it.
    def driver(machine) = virtual_clock?(machine) ? "qemu" : choice("FWLAB_ACCEL", %w[qemu kvm])

    def libvirt_uri = @env.fetch("FWLAB_LIBVIRT_URI", Process.uid.zero? ? "qemu:///system" : "qemu:///session")

    def virtual_clock?(machine) = machine.role == "dut" && choice("FWLAB_TESTBED", %w[virtual real]) == "virtual"

    # QEMU options that libvirt has no words for: management on the loopback address, and the DUT's clock.
    def qemu_args(machine)
      board = @topology.fetch("machine")
      forward = "hostfwd=tcp:#{address}:#{machine.ssh_port}-#{board.fetch('management_address').split('/').first}:22"
      args = ["-netdev", "user,id=management,net=#{board.fetch('management_network')},restrict=on,#{forward}",
              "-device", "virtio-net-pci,netdev=management,addr=#{format('0x%x', board.fetch('management_pci_slot'))}"]
      # A deep ring outlasts the turns in which a slowed DUT runs.
      args += ["-global", "virtio-net-pci.rx_queue_size=#{board.fetch('receive_ring')}"]
      if virtual_clock?(machine)
        args += ["-icount", "shift=#{@topology['clock']['icount_shift']},sleep=on"]
        # QEMU's main loop would send, and hear of packets to be sent, when the host lets it; and a full transmit ring
        # costs the DUT instructions. A timer of the DUT's own clock sends, and the CPU's own thread hears of it: both at
        # the same instruction each time.
        args += ["-global", "virtio-net-pci.tx=timer", "-global", "virtio-net-pci.ioeventfd=off"]
      end
      args
    end

    # A feature's name that libvirt reads as an element with a child: QEMU's cache of translated code, in MiB.
    def translation_cache(machine)
      driver(machine) == "qemu" ? ["tcg><tb-cache unit='MiB'>#{TRANSLATION_CACHE_MIB}</tb-cache></tcg><pae"] : ["pae"]
    end

    def address = @topology.fetch("ports").fetch("address")

    def memory_mib(machine) = with_trex(machine).fetch("memory_mib") { machine.node.fetch("memory_mib") }

    def cpu_model(machine) = with_trex(machine).fetch("cpu_model") { @topology.fetch("machine").fetch("cpu_model") }

    private

    def machines_of(lab)
      @topology.fetch("nodes").map do |role, node|
        name = role == "dut" ? lab : "#{lab}-#{role}"
        Machine.new(name: name, role: role, lab: lab, node: node, links: links_of(role, lab[3, 2].to_i),
                    ssh_port: port("ssh_base", lab[3, 2].to_i, node.fetch("ssh_offset")),
                    box: box(node.fetch("image")), seed: File.join(cache, "seeds", key, "#{name}.iso"),
                    console: File.join(@root, ".fwlab", "console", "#{name}.log"))
      end
    end

    def links_of(role, number)
      mine = @topology.fetch("links").select { |_, link| link.fetch("ends").key?(role) }
      mine.map do |name, link|
        far_role = link["ends"].keys.find { |other| other != role }
        near, far = link["ends"].values_at(role, far_role)
        LinkEnd.new(name: name, mtu: link["mtu"], queues: link["queues"], near: near, far: far,
                    behind_far: link.dig("behind", far_role) || [],
                    local_port: port("link_base", number, near["port_offset"]),
                    remote_port: port("link_base", number, far["port_offset"]))
      end
    end

    def port(base, number, offset)
      ports = @topology.fetch("ports")
      ports.fetch(base) + ports.fetch("per_lab") * number + offset + Integer(@env.fetch("FWLAB_PORT_OFFSET", "0"))
    rescue ArgumentError
      raise Problem.new("FWLAB_PORT_OFFSET=#{@env['FWLAB_PORT_OFFSET']} is not a whole number",
                        "export FWLAB_PORT_OFFSET=100")
    end

    # The box that the image was built into, or nil before `make boxes`.
    def box(image) = images.dig(image, "box")

    # What the machine has instead of its usual memory and CPU where its image holds TRex.
    def with_trex(machine)
      images.dig(machine.node.fetch("image"), "trex") ? machine.node.fetch("with_trex", {}) : {}
    end

    def images
      @images ||= JSON.parse(File.read(File.join(@root, ".fwlab", "images.json")))
    rescue Errno::ENOENT, JSON::ParserError
      {}
    end

    def choice(name, allowed)
      value = @env.fetch(name, allowed.first)
      return value if allowed.include?(value)

      raise Problem.new("#{name}=#{value} is neither of #{allowed.join(', ')}", "export #{name}=#{allowed.first}")
    end
  end
end
