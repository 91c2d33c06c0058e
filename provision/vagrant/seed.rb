# SPDX-License-Identifier: GPL-2.0-or-later
# Gives a machine its identity at its first boot: the checkout's SSH key and a NoCloud seed, a small CD made from the
# templates in provision/cloud-init. A changed template or topology changes the instance id, so that cloud-init applies
# it at the next start.

require "digest"
require "erb"
require "fileutils"
require "open3"
require "tmpdir"

require_relative "lab_machines"

module FirewallLab
  class Seed
    TEMPLATES = File.expand_path("../cloud-init", __dir__)

    def initialize(project, machine)
      @project = project
      @machine = machine
    end

    # {file name on the CD: text}
    def files
      templates = @machine.system::SEED
      @instance = Digest::SHA256.hexdigest(render(templates.values.first))[0, 16]
      templates.transform_values { |template| render(template) }
    end

    # The same without the checkout's SSH key, and without the instance id that follows from it.
    def portable
      own = File.read("#{@project.private_key}.pub").strip
      files.transform_values { |text| text.gsub(own, "KEY").gsub(@instance, "INSTANCE") }
    end

    # Writes the CD atomically, into a folder that QEMU can read as another user.
    def write
      folder = File.dirname(@machine.seed)
      FileUtils.mkdir_p(folder)
      Dir.mktmpdir("seed-", folder) do |work|
        names = files.map { |name, text| File.join(work, name).tap { |path| File.write(path, text) } }
        image = File.join(work, "seed.iso")
        Seed.run(*maker, "-quiet", "-volid", "cidata", "-joliet", "-rock", "-output", image, *names)
        File.chmod(0o644, image)
        File.rename(image, @machine.seed)
      end
    end

    # The key with which `vagrant ssh` and fwlab log in. Made once per checkout, never part of a box.
    def self.ensure_key(path)
      return if File.exist?(path)

      FileUtils.mkdir_p(File.dirname(path), mode: 0o700)
      run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "fwlab", "-f", path)
    end

    def self.run(*command)
      output, status = Open3.capture2e(*command)
      return if status.success?

      raise Problem.new("#{command.first} failed: #{output.strip.lines.last}", "df -h, then try again")
    rescue Errno::ENOENT
      raise Problem.new("#{command.first} is missing", "provision/host/install")
    end

    private

    # Both take mkisofs's arguments. Distributions differ in which they have.
    def maker
      found = ->(tool) { ENV["PATH"].split(":").any? { |dir| File.executable?(File.join(dir, tool)) } }
      return %w[xorriso -as mkisofs] if found.call("xorriso")
      return %w[genisoimage] if found.call("genisoimage")

      raise Problem.new("xorriso is missing: it makes the machines' seeds", "provision/host/install")
    end

    def render(name, indent: 0, **locals)
      template = ERB.new(File.read(File.join(TEMPLATES, "#{name}.erb")), trim_mode: "-")
      scope = { project: @project, machine: @machine, instance: @instance, **locals }
      context = binding
      scope.each { |key, value| context.local_variable_set(key, value) }
      template.result(context).gsub(/^(?=.)/, " " * indent)
    end
  end
end
