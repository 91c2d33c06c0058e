# SPDX-License-Identifier: GPL-2.0-or-later
# Records in .fwlab/LAB/machines.json what `vagrant up` made: testbed, boxes and links. The record describes what
# libvirt has defined, not what was asked for, because a halted machine starts again as it was made. fwlab reads it
# before it measures.

require "fileutils"
require "json"
require "open3"
require "rexml/document"
require "tempfile"

require_relative "lab_machines"

module FirewallLab
  module Record
    FORMAT = "fwlab-machines/1"
    ACCELERATORS = { "qemu" => "tcg", "kvm" => "kvm" }.freeze
    MUTEX = Mutex.new # Vagrant starts machines in threads

    # Runs after Vagrant has brought up, reloaded or destroyed a machine.
    class Action
      def initialize(app, _env)
        @app = app
      end

      def call(env)
        project = LabNames.project
        machine = project.machines.find { |one| one.name == env[:machine].name.to_s }
        return unless machine

        left = Record.update(project, machine, made_from(env[:machine]))
        HostLinks.restore(project, machine.lab) if left.empty?
      rescue Problem => e
        env[:ui].warn(e.error_message)
      rescue SystemCallError => e
        env[:ui].warn("#{Record.file(project, machine.lab)}: cannot be written: #{e.message}\n  next: df -h")
      ensure
        @app.call(env)
      end

      private

      # The box that the machine was made from. A newer one may have been built since.
      def made_from(machine)
        JSON.parse(machine.data_dir.join("box_meta").read).fetch("name")
      rescue SystemCallError, JSON::ParserError, KeyError
        machine.config.vm.box
      end
    end

    def self.file(project, lab) = File.join(project.root, ".fwlab", lab, "machines.json")

    # Records what libvirt has under the machine's name; removes the machine if libvirt has nothing. Returns the lab's
    # machines by role.
    def self.update(project, machine, box)
      path = file(project, machine.lab)
      MUTEX.synchronize do
        FileUtils.mkdir_p(File.dirname(path))
        File.open("#{path}.lock", File::RDWR | File::CREAT) do |lock|
          lock.flock(File::LOCK_EX)
          machines = read(path)
          xml = defined_as(project, "#{project.prefix}#{machine.name}")
          xml ? machines[machine.role] = describe(project, machine, xml, box) : machines.delete(machine.role)
          machines.empty? ? FileUtils.rm_f(path) : write(project, path, machine.lab, machines)
          machines
        end
      end
    end

    # One machine, from libvirt's XML.
    def self.describe(project, machine, xml, box)
      domain = REXML::Document.new(xml).root
      arguments = REXML::XPath.match(domain, "//*[local-name()='commandline']/*[local-name()='arg']")
      words = arguments.map { |argument| argument.attributes["value"] }
      icount = words.each_cons(2).find { |option, _| option == "-icount" }
      links = links(project, machine, domain, words)
      {
        "domain" => domain.elements["name"].text,
        "box" => box,
        "accelerator" => ACCELERATORS.fetch(domain.attributes["type"], domain.attributes["type"]),
        "icount_shift" => icount && icount.last[/shift=(\d+)/, 1]&.to_i,
        "link" => links.values.uniq.sort.join("+"),
        "links" => links
      }
    end

    # {link: kind}. An interface belongs to the link whose MAC address it has. A handed-over PCI device has none in the
    # XML: those are the links that are left, in their order. `words`: QEMU's arguments, which make hubs.
    def self.links(project, machine, domain, words)
      interfaces = REXML::XPath.match(domain, "devices/interface")
      by_mac = interfaces.to_h { |one| [one.elements["mac"]&.attributes&.[]("address"), one.attributes["type"]] }
      found = machine.links.to_h { |link| [link.name, by_mac.delete(link.near["mac"])] }
      found.merge!(Nics.links_in(words).to_h { |name| [name, Nics::CARRIER] }) { |_, type, hub| type || hub }
      left = by_mac.values + REXML::XPath.match(domain, "devices/hostdev[@type='pci']").map { "hostdev" }
      found.transform_values { |type| type || left.shift }.compact.transform_values { |type| link_kind(project, type) }
    end

    # The kind of link that has this type of interface in libvirt; the type itself if there is none.
    def self.link_kind(project, type) = project.link_kinds.find { |kind| kind::INTERFACE == type } || type

    def self.defined_as(project, name)
      xml, status = Open3.capture2("virsh", "--quiet", "--connect", project.libvirt_uri, "dumpxml", name,
                                   err: File::NULL)
      status.success? ? xml : nil
    end

    def self.read(path)
      found = JSON.parse(File.read(path))
      found.is_a?(Hash) && found["machines"].is_a?(Hash) ? found["machines"] : {}
    rescue Errno::ENOENT, JSON::ParserError
      {}
    end

    def self.write(project, path, lab, machines)
      dut = machines["dut"]
      testbed = dut && project.testbeds.find { |kind| kind.matches?(dut) }
      text = JSON.pretty_generate("format" => FORMAT, "lab" => lab, "testbed" => testbed, "machines" => machines)
      draft = "#{path}.part"
      File.write(draft, "#{text}\n")
      File.rename(draft, path)
    ensure
      FileUtils.rm_f(draft)
    end

    # Hooks the above into Vagrant's own actions, once.
    def self.install
      return if const_defined?(:Plugin, false)

      plugin = Class.new(Vagrant.plugin("2")) do
        name "fwlab"
        %i[up reload destroy].each do |action|
          action_hook(:fwlab, :"machine_action_#{action}") { |hook| hook.append(Action) }
        end
      end
      const_set(:Plugin, plugin)
    end
  end
end
