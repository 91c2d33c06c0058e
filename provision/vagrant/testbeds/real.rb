# SPDX-License-Identifier: GPL-2.0-or-later
# The real testbed: the DUT runs by the host's clock. See fwlab/testbed/kinds/.

module FirewallLab
  module Testbeds
    module Real
      # QEMU's accelerator for the DUT.
      def self.dut_accelerator(project) = project.accelerator

      # QEMU's arguments for the DUT.
      def self.dut_arguments(_topology) = []

      # Whether a DUT, as record.rb describes it, was made for this testbed.
      def self.matches?(dut) = dut["icount_shift"].nil?
    end
  end
end
