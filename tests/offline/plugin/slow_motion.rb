# SPDX-License-Identifier: GPL-2.0-or-later

module FirewallLab
  module Testbeds
    module SlowMotion
      def self.dut_accelerator(_project) = "tcg"

      def self.dut_arguments(_topology) = ["-icount", "shift=5,sleep=on"]

      def self.matches?(dut) = dut["icount_shift"] == 5
    end
  end
end
