# SPDX-License-Identifier: GPL-2.0-or-later
"""`vagrant halt` and `vagrant reload` of a machine that hangs, without a machine."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from tests.offline.programs import needs

ROOT = Path(__file__).resolve().parents[2]


@needs("ruby")
def test_a_guest_that_does_not_shut_down_is_powered_off() -> None:
    """The provider waits for the guest and gets a timeout error from its library; then it powers the guest off."""
    script = """
        require 'json'
        require './provision/vagrant/commands'
        module Fog; module Errors; class TimeoutError < StandardError; end; end; end
        Said = Struct.new(:lines) { def warn(line) = lines << line }
        Halt = Struct.new(:graceful_halt_timeout)
        Config = Struct.new(:vm)
        Guest = Struct.new(:config)
        class Step
          def initialize(app, hangs) = (@app, @hangs = app, hangs)
          def call(env)
            env[:result] = true
            raise Fog::Errors::TimeoutError, 'The specified wait_for timeout (60 seconds) was exceeded' if @hangs
            @app.call(env)
          end
        end
        Step.prepend(FirewallLab::Shutdown)
        ended = [true, false].map do |hangs|
          env = { ui: Said.new([]), machine: Guest.new(Config.new(Halt.new(60))) }
          after = nil
          Step.new(->(inner) { after = inner[:result] }, hangs).call(env)
          [after, env[:ui].lines]
        end
        puts JSON.generate(ended)
    """
    done = subprocess.run(["ruby", "-e", script], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [[False, ["does not shut down within 60 s: switching it off"]], [True, []]]
