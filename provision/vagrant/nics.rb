# SPDX-License-Identifier: GPL-2.0-or-later
# Several NICs of a DUT on each of its links, for a lab whose `needs.nics` name them. The socket and all NICs of a link
# are ports of one hub of QEMU's, so every NIC hears the same frames. The DUT uses one NIC of each link at a time
# (fwlab/rulesets/kinds/nic.py). libvirt knows no hubs, hence QEMU's own arguments.

require "yaml"

module FirewallLab
  module Nics
    # Links whose frames can reach several NICs: libvirt's type of an interface.
    CARRIER = "udp"

    # QEMU's arguments for virtio NICs without event indexes. With them, a NIC whose notification is lost can stop for
    # good; without them, only until the next packet.
    UNINDEXED = ["-global", "virtio-net-pci.event_idx=off"].freeze

    # The NICs that a lab's DUT has beside the usual one, by QEMU's names.
    def self.needed(root, lab)
      data = YAML.safe_load(File.read(File.join(root, "labs", lab, "lab.yml")), aliases: true)
      nics = data.is_a?(Hash) && data["needs"].is_a?(Hash) && data["needs"]["nics"]
      nics.is_a?(Array) ? nics.grep(/\A[a-z][a-z0-9-]*\z/) : []
    rescue SystemCallError, Psych::Exception
      [] # fwlab reports what is wrong with the file
    end

    # QEMU's arguments for all NICs of these links. The usual ones come first on the PCI bus, so that the guest counts
    # them first.
    def self.arguments(board, links, address)
      links.each_with_index.flat_map do |link, hub|
        models = ["#{board.fetch('nic_model')}-net-pci", *link.nics]
        wire(link, hub, address) + models.each_with_index.flat_map do |model, place|
          slot = format("0x%x", board.fetch("link_pci_slot") + (place * links.length) + hub)
          ["-netdev", "hubport,id=#{link.name}-#{place},hubid=#{hub}",
           "-device", "#{model},netdev=#{link.name}-#{place},mac=#{mac(link.near['mac'], place)},addr=#{slot}"]
        end
      end
    end

    # The MAC address of a link's NIC: its third byte counts the NICs.
    def self.mac(usual, place) = usual.split(":").tap { |bytes| bytes[2] = format("%02x", place) }.join(":")

    def self.wire(link, hub, address)
      ["-netdev", "socket,id=#{link.name},udp=#{address}:#{link.remote_port},localaddr=#{address}:#{link.local_port}",
       "-netdev", "hubport,id=#{link.name}-wire,hubid=#{hub},netdev=#{link.name}"]
    end

    # The names of those links that a machine's QEMU arguments join to hubs.
    def self.links_in(arguments)
      arguments.each_cons(2).filter_map { |option, value| value[/\Asocket,id=([\w-]+),udp=/, 1] if option == "-netdev" }
    end
  end
end
