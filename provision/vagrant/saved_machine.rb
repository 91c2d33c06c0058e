# SPDX-License-Identifier: GPL-2.0-or-later
# A new machine continues from the state in which one like it was saved, where there is such a state: that takes seconds
# in place of a boot. Where there is none, the machine boots as always, and its state is saved for the next one.
#
# The cache keeps, by a key of all that the state depends on, the machine's disk with an internal snapshot of its memory
# (see fwlab/testbed/saved_state.py), compressed, its record with the SHA-256, and a key pair that lets the next checkout
# in: the machine knows the SSH key of the checkout that saved it. Labs, ports and checkouts may differ.

require "digest"
require "fileutils"
require "json"
require "open3"
require "openssl"
require "rexml/document"
require "tmpdir"

require_relative "at_once"
require_relative "lab_machines"
require_relative "seed"

module FirewallLab
  class SavedMachine
    FORMAT = "fwlab-saved/1"
    SNAPSHOT = "fwlab-saved"
    # Of machines with this role, so many states are kept: two checkouts with different boxes do not disturb each other.
    KEPT = 2
    # A tenth smaller than by the usual level, and restored as fast; a state is saved once.
    COMPRESS = %w[zstd -q -9 --long=27 -T0 -c].freeze
    # Room for a disk with a machine's memory, beside the compressed one (bytes).
    NEEDED = 2 << 30
    SSH = %w[-F none -o BatchMode=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR
             -o IdentitiesOnly=yes].freeze

    # A step that did not work. The machine then boots.
    class Failure < StandardError; end

    # nil where machines always boot: where the user wants it, and where a part of them (see kinds.rb) is not SAVABLE,
    # because its state is the host's, or lasts only while the machine runs.
    def self.of(project, machine)
      parts = [project.testbed, machine.system, *machine.links.map(&:kind)]
      return if !project.saved_machines? || project.accelerator != "tcg"

      new(project, machine) if parts.all? { |part| part.const_defined?(:SAVABLE, false) }
    end

    def initialize(project, machine)
      @project = project
      @machine = machine
      @domain = "#{project.prefix}#{machine.name}"
      @restored = false
    end

    # Whether the machine runs from its saved state.
    attr_reader :restored

    # Start the machine, which is defined and has a new disk, from the saved state. Returns whether it runs; if not, it is
    # as it was before. `tell` gets a line if there is a state that cannot be used, or there are only others.
    def restore(tell)
      return false unless fits?(tell) && whole?(tell)

      put_disk
      revert
      FirewallLab.at_once(-> { identify }, -> { virsh("snapshot-delete", @domain, SNAPSHOT) })
      FileUtils.touch(file) # the states that were not used for longest are removed first
      @restored = true
    rescue Failure, SystemCallError => e
      tell.call("the saved state cannot be used, so it boots: #{e.message}")
      undo
    ensure
      FileUtils.rm_f(fresh) if @disk
    end

    # Save the state of the running machine, which has just booted. The machine goes on. `tell` gets a line if that fails.
    def take(tell)
      FileUtils.mkdir_p(folder)
      File.open("#{base}.lock", File::RDWR | File::CREAT) do |lock|
        return if !lock.flock(File::LOCK_EX | File::LOCK_NB) || File.exist?(file) # another machine's is being saved

        save
      end
      forget_old
    rescue Failure, SystemCallError => e
      tell.call("its state was not saved, so the next machine boots, too: #{e.message}")
    end

    # What a saved state depends on, as a hash: everything but names, paths, ports and SSH keys. QEMU counts by its
    # version, not by its path.
    def self.fingerprint(xml, seed, box, qemu)
      domain = REXML::Document.new(xml).root
      %w[name uuid title description metadata].each { |name| domain.delete_element(name) }
      domain.delete_element("devices/emulator")
      REXML::XPath.each(domain, "//source | //local") do |element|
        %w[file path port startupPolicy index].each { |name| element.delete_attribute(name) }
      end
      arguments = REXML::XPath.match(domain, "//*[local-name()='arg']")
      arguments.each do |one|
        one.attributes["value"] = one.attributes["value"].gsub(/(tcp:|udp=|localaddr=)[\d.]+:\d+/, "\\1")
      end
      REXML::XPath.each(domain, "//backingStore | //disk/address") { |element| element.parent.delete(element) }
      Digest::SHA256.hexdigest(JSON.generate([FORMAT, domain.to_s.gsub(/\s+/, " "), seed, box, qemu]))[0, 16]
    end

    private

    def key = @key ||= find_key

    def find_key
      emulator = xml[%r{<emulator>([^<]+)</emulator>}, 1] || raise(Failure, "its description names no emulator")
      version = run(emulator, "--version").lines.first.to_s.strip
      SavedMachine.fingerprint(xml, Seed.new(@project, @machine).portable, @machine.box, version)
    end

    def folder = File.join(@project.cache, "saved")
    def base = File.join(folder, "#{@machine.role}-#{key}")
    def file = "#{base}.qcow2.zst"
    def login_key = "#{base}.key"

    # The description of the machine while it does not run.
    def xml = @xml ||= virsh("dumpxml", "--inactive", @domain)

    def disk = @disk ||= find_disk

    # Where the machine's new disk waits while the saved one is tried.
    def fresh = "#{disk}.fresh"

    def find_disk
      target = REXML::XPath.first(REXML::Document.new(xml), "//disk[target/@dev='vda']/source/@file")
      target&.value || raise(Failure, "its disk is not a file")
    end

    def fits?(tell)
      return true if File.exist?(file)

      others = Dir.glob(File.join(folder, "#{@machine.role}-*.qcow2.zst"))
      tell.call("no saved state fits its box, NICs and this host's QEMU, so it boots, and is saved") if others.any?
      false
    end

    # Whether the state is what was saved. A damaged one is removed.
    def whole?(tell)
      record = JSON.parse(File.read("#{file}.json"))
      return true if record["sha256"] == sum(file) && File.exist?(login_key)

      raise JSON::ParserError
    rescue JSON::ParserError, SystemCallError
      tell.call("#{file} is damaged: removing it, and booting")
      remove(base)
      false
    end

    # OpenSSL's is four times faster than that of "digest", and each of three machines waits for the others'.
    def sum(path) = OpenSSL::Digest::SHA256.file(path).hexdigest

    # Replace the new disk by the saved one, which stands on the same box.
    def put_disk
      room(File.dirname(disk))
      below = JSON.parse(run("qemu-img", "info", "--output=json", disk)).fetch("full-backing-filename")
      File.rename(disk, fresh)
      run("zstd", "-dqf", file, "-o", disk)
      run("qemu-img", "rebase", "-u", "-F", "qcow2", "-b", below, disk)
    end

    def revert
      snapshot = <<~XML
        <domainsnapshot>
          <name>#{SNAPSHOT}</name>
          <state>running</state>
          <creationTime>#{Time.now.to_i}</creationTime>
          <memory snapshot='internal'/>
          <disks><disk name='vda' snapshot='internal'/></disks>
          #{xml}
        </domainsnapshot>
      XML
      virsh("snapshot-create", @domain, "/dev/stdin", "--redefine", input: snapshot)
      virsh("snapshot-revert", @domain, SNAPSHOT, "--running")
    end

    # Let this checkout in, and nobody else.
    def identify
      public_key = File.read("#{@project.private_key}.pub").strip
      login(login_key, "echo '#{public_key}' >.ssh/authorized_keys.new && mv .ssh/authorized_keys.new .ssh/authorized_keys")
    end

    # After a failure: the machine is off, and has its new disk.
    def undo
      attempt("virsh", "--quiet", "--connect", @project.libvirt_uri, "destroy", @domain)
      attempt("virsh", "--quiet", "--connect", @project.libvirt_uri, "snapshot-delete", @domain, SNAPSHOT, "--metadata")
      File.rename(fresh, disk) if @disk && File.exist?(fresh)
      false
    end

    def save
      room(folder)
      Dir.mktmpdir("saving-", folder) do |work|
        pair = File.join(work, "key")
        run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "fwlab-saved", "-f", pair)
        admitted(File.read("#{pair}.pub").strip) { keep_disk(File.join(work, "disk.zst")) }
        publish(File.join(work, "disk.zst"), pair)
      end
    end

    # The state lets the owner of this key in; the machine, afterwards, does not.
    def admitted(public_key)
      own = @project.private_key
      login(own, "systemctl is-system-running --wait >/dev/null; echo '#{public_key}' >>.ssh/authorized_keys && sync")
      virsh("snapshot-create-as", @domain, SNAPSHOT)
      begin
        login(own, "sed -i '$d' .ssh/authorized_keys")
        yield
      ensure
        virsh("snapshot-delete", @domain, SNAPSHOT)
      end
    end

    # While the machine is suspended, QEMU has written everything to the file and writes nothing.
    def keep_disk(target)
      virsh("suspend", @domain)
      # A copy of the disk, but not of its owner, which is QEMU's user.
      File.open(target, "wb", 0o600) { |file| Open3.pipeline([*COMPRESS, disk], out: file) }
          .each { |status| raise Failure, "zstd: #{disk} cannot be compressed" unless status.success? }
    ensure
      virsh("resume", @domain)
    end

    # The record is there before the file that it vouches for.
    def publish(made, pair)
      File.rename(pair, login_key)
      File.write("#{file}.json", "#{JSON.generate('format' => FORMAT, 'sha256' => sum(made))}\n")
      File.rename(made, file)
    end

    def forget_old
      states = Dir.glob(File.join(folder, "#{@machine.role}-*.qcow2.zst")).sort_by { |path| File.mtime(path) }
      states[0...-KEPT].to_a.each { |path| remove(path.delete_suffix(".qcow2.zst")) }
    end

    def remove(name) = FileUtils.rm_f(%w[.qcow2.zst .qcow2.zst.json .key .lock].map { |suffix| name + suffix })

    def room(directory)
      free = run("df", "--output=avail", "-B1", directory).lines.last.to_i
      raise Failure, "#{directory} has #{free >> 20} MiB left, #{NEEDED >> 20} are needed" if free < NEEDED
    end

    def login(identity, command)
      patience = ["-o", "ConnectTimeout=#{@project.seconds(20)}"]
      to = ["-p", @machine.ssh_port.to_s, "vagrant@#{@project.address}"]
      run("ssh", *SSH, *patience, "-i", identity, *to, command)
    end

    def virsh(*words, input: "") = run("virsh", "--quiet", "--connect", @project.libvirt_uri, *words, input: input)

    # What a command prints. Raises Failure if it fails.
    def run(*command, input: "")
      output, errors, status = Open3.capture3(*command, stdin_data: input)
      return output if status.success?

      said = errors.strip.lines.last || "exit #{status.exitstatus}"
      raise Failure, "#{command.first}: #{said.strip}"
    end

    def attempt(*command) = Open3.capture2e(*command)

    # Vagrant's action that makes a machine: everything until the machine lets Vagrant in happens within it.
    module Creation
      def call(env)
        project = LabNames.project
        machine = project.machines.find { |one| one.name == env[:machine].name.to_s }
        saved = machine && SavedMachine.of(project, machine)
        tell = ->(line) { env[:ui].warn(line) }
        Thread.current[:fwlab_saved] = saved && [saved, tell]
        super
        saved.take(tell) if saved && !saved.restored && !env[:interrupted]
      ensure
        Thread.current[:fwlab_saved] = nil
      end
    end

    # Vagrant's wait for a machine to let it in. One that runs from its saved state has done so (identify); for another
    # connection, three machines that were just restored would take two seconds.
    module Greeting
      def call(env)
        saved, = Thread.current[:fwlab_saved]
        saved&.restored ? @app.call(env) : super
      end
    end

    # The library's way to start a machine. It does nothing with one that runs.
    module Starting
      def start
        saved, tell = Thread.current[:fwlab_saved]
        return reload && true if saved&.restore(tell)

        super
      end
    end
  end
end
