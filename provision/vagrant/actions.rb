# SPDX-License-Identifier: GPL-2.0-or-later
# What the plug-in adds to the provider's actions, as middleware.

require "delegate"
require "vagrant-libvirt/action"

module FirewallLab
  module Actions
    Provided = VagrantPlugins::ProviderLibvirt::Action

    def self.before(hook) = hook.prepend(Prepare)
    def self.create(hook) = hook.after(Provided::CreateNetworkInterfaces, Continue)
    def self.halt(hook) = hook.before(Provided::ShutdownDomain, PowerOff)
    def self.after(hook) = hook.append(Record)

    # Leaves out the settings of each machine and the progress of each copy: over a hundred lines a lab.
    class Quiet < SimpleDelegator
      def info(message, *, **) = message.to_s.match?(/\A +(--|->) /) ? nil : super
      def clear_line(*) = nil
      def report_progress(*, **) = nil
      def rewriting = yield(self)
    end

    class Base
      def initialize(app, _env) = @app = app

      private

      def plan(env) = Plan.of(env[:machine].env)
      def name(env) = env[:machine].name.to_s
      def ours?(env) = plan(env)&.machines&.key?(name(env))
      def fwlab(env, *words) = plan(env).fwlab(*words)
    end

    # A command prepares all its machines at once; this is for those that are named by an ID or a pattern.
    class Prepare < Base
      def call(env)
        if ours?(env)
          plan(env).prepare([name(env)], restart: env[:action_name] == :machine_action_reload)
          env[:ui] = Quiet.new(env[:ui])
        end
        @app.call(env)
      end
    end

    # A new machine continues from the saved state of one like it, where there is such a state; Vagrant then finds it
    # running and waits for nothing. Where there is none, the machine boots, and its state is saved for the next one.
    class Continue < Base
      def call(env)
        saves = ours?(env) && plan(env).machines[name(env)][:savable]
        restored = saves && done?(env, "restore", env[:machine].config.vm.box)
        env[:fwlab_recorded] = saves # by the same command, since each takes time to start
        @app.call(env)
        done?(env, "save") if saves && !restored && !env[:interrupted]
      end

      private

      def done?(env, step, *words)
        told = JSON.parse(fwlab(env, step, name(env), *words))
        told.fetch("warnings").each { |line| env[:ui].warn(line) }
        told.fetch("done")
      end
    end

    # If a guest does not answer, `vagrant halt` and `reload` switch it off. The provider does so only if its wait for
    # the guest ends without an error, but its library ends the wait with one.
    class PowerOff < Base
      def call(env)
        @app.call(env)
      rescue Fog::Errors::TimeoutError
        seconds = env[:machine].config.vm.graceful_halt_timeout
        env[:ui].warn("does not shut down within #{seconds} s: switching it off")
        env[:result] = false
      end
    end

    # Records in .fwlab/LAB/machines.json what libvirt has, and restores the host once the lab has no machine.
    class Record < Base
      def call(env)
        fwlab(env, "record", name(env), box(env[:machine])) if ours?(env) && !env[:fwlab_recorded]
      rescue Problem => e
        env[:ui].warn(e.error_message)
      ensure
        @app.call(env)
      end

      private

      # The box that the machine was made from. A newer one may have been built since.
      def box(machine)
        JSON.parse(machine.data_dir.join("box_meta").read).fetch("name")
      rescue SystemCallError, JSON::ParserError, KeyError
        machine.config.vm.box
      end
    end
  end
end
