# SPDX-License-Identifier: GPL-2.0-or-later
# The virtual testbed: the DUT's clock counts instructions, which only emulation can do. See fwlab/testbed/kinds/.

module FirewallLab
  module Testbeds
    module Virtual
      # Instructions are counted on one CPU only.
      MOST_CPUS = 1

      # Its machines can be saved: what they see does not depend on the host (saved_machine.rb).
      SAVABLE = true

      # QEMU's accelerator for the DUT.
      def self.dut_accelerator(_project) = "tcg"

      # QEMU's arguments for the DUT. QEMU's main loop sends packets, and learns of packets to send, when the host
      # schedules it; and a full transmit ring costs the DUT instructions. With a timer on the DUT's own clock, and
      # notification in the CPU's own thread, both happen at the same instruction each time.
      def self.dut_arguments(topology)
        ["-icount", "shift=#{topology['clock']['icount_shift']},sleep=on",
         "-global", "virtio-net-pci.tx=timer", "-global", "virtio-net-pci.ioeventfd=off"]
      end

      # Whether a DUT, as record.rb describes it, was made for this testbed.
      def self.matches?(dut) = !dut["icount_shift"].nil?
    end
  end
end
