# SPDX-License-Identifier: GPL-2.0-or-later
# Checks that the ports on which machines will listen are free. QEMU would only say that it could not start.

require "open3"
require "socket"

require_relative "lab_machines"

module FirewallLab
  module Ports
    # Raises Problem for the first port that is taken. Names the port and, if this user may see it, its holder.
    def self.check(project, machines)
      machines.each do |machine|
        machine.ports.each do |protocol, port, purpose|
          next if free?(project.address, protocol, port)

          raise Problem.new(
            "#{protocol} port #{project.address}:#{port} (#{purpose} of #{machine.name}) is taken" \
            "#{holder(protocol, port)}",
            "`export FWLAB_PORT_OFFSET=100` for this and every later command, or end what holds the port " \
            "(a lab of another checkout: `vagrant destroy #{machine.lab}` there)"
          )
        end
      end
    end

    def self.free?(address, protocol, port)
      socket = protocol == :udp ? UDPSocket.new.tap { |udp| udp.bind(address, port) } : TCPServer.new(address, port)
      socket.close
      true
    rescue Errno::EADDRINUSE
      false
    end

    # " by qemu-system-x86 (pid 123, fwlab-...-lab03-ipset)", or "" if it cannot be seen.
    def self.holder(protocol, port)
      output, = Open3.capture2("ss", "-Hlnp", protocol == :udp ? "-u" : "-t", "sport = :#{port}")
      name, pid = output.match(/users:\(\("([^"]+)",pid=(\d+)/)&.captures
      guest = pid && File.read("/proc/#{pid}/cmdline")[/guest=([^,\0]+)/, 1]
      name ? " by #{name} (#{["pid #{pid}", guest].compact.join(', ')})" : ""
    rescue SystemCallError
      ""
    end
  end
end
