# SPDX-License-Identifier: GPL-2.0-or-later
# Usage: ruby record_vagrantfile.rb CHECKOUT <topologies.json
#
# Evaluates the Vagrantfile and the machines' seeds without Vagrant, once for each topology in a JSON list (null: the
# checkout's own), and prints a JSON list of every call that the Vagrantfile makes and every file of every seed.

require "json"
require "yaml"

# Notes each call; what a call returns or yields notes the calls made on it.
class Recorder
  def initialize(calls, path = "")
    @calls = calls
    @path = path
    @set = {}
  end

  def method_missing(name, *arguments, **options, &block)
    here = "#{@path}.#{name}"
    return @set[name] if arguments.empty? && options.empty? && @set.key?(name)

    @calls << [here, arguments, options] unless arguments.empty? && options.empty?
    @set[name.to_s.delete_suffix("=").to_sym] = arguments.first if name.end_with?("=")
    child = Recorder.new(@calls, here)
    block&.call(child)
    child
  end

  def respond_to_missing?(*) = true
end

module Vagrant
  def self.configure(_version) = yield(Recorder.new($calls))
end

root = ARGV.fetch(0)
require File.join(root, "provision/vagrant/commands")
FirewallLab.define_singleton_method(:install) { |project| FirewallLab::Seed.ensure_key(project.private_key) }
topology = File.join(root, "topology.yml")
own = File.read(topology)
results = JSON.parse($stdin.read).map do |given|
  File.write(topology, given ? JSON.generate(given) : own)
  $calls = []
  load File.join(root, "Vagrantfile")
  project = FirewallLab::Project.new(root)
  seeds = project.machines.to_h { |machine| [machine.name, FirewallLab::Seed.new(project, machine).files] }
  { calls: $calls, seeds: seeds, ports: project.machines.to_h { |machine| [machine.name, machine.ports] } }
end
puts JSON.generate(results)
