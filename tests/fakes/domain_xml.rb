# SPDX-License-Identifier: GPL-2.0-or-later
# Appended to a Vagrantfile: when Vagrant ends, prints the XML that its libvirt provider gives to libvirt for each machine
# of lab03-ipset, as a JSON list of {role, domain, interfaces}. The provider's own code makes the XML; only the connection
# to libvirt is replaced.

require "json"

# Takes any call. Keeps the XML of a domain and of each device that is attached to it.
class Pretended
  attr_reader :domain, :devices

  def initialize = @devices = []

  def create(xml: nil, **)
    @domain = xml if xml
    self
  end

  def attach_device(xml) = @devices << xml

  def id = "0"

  def xml_desc = "<domain/>"

  def to_str = ""

  def method_missing(*) = self

  def respond_to_missing?(name, *) = name != :to_ary
end

at_exit do
  require "vagrant-libvirt/action"
  environment = ObjectSpace.each_object(Vagrant::Environment).first
  actions = VagrantPlugins::ProviderLibvirt::Action
  ui = Vagrant::UI::Silent.new
  made = { generator: "lab03-ipset-generator", dut: "lab03-ipset", sink: "lab03-ipset-sink" }.map do |role, name|
    machine = environment.machine(name.to_sym, :libvirt)
    machine.config.vm.box = nil # there is none, and only its name would be printed
    libvirt = Pretended.new
    machine.provider.driver.define_singleton_method(:connection) { libvirt }
    env = { machine: machine, ui: ui, root_path: Dir.pwd, domain_name: name, domain_volumes: [], disks: [] }
    machine.define_singleton_method(:id=) { |*| nil }
    actions::CreateDomain.new(->(_) {}, env).call(env)
    actions::CreateNetworkInterfaces.new(->(_) {}, env).call(env)
    { role: role, domain: libvirt.domain, interfaces: libvirt.devices }
  end
  puts "XML #{JSON.generate(made)}"
end
