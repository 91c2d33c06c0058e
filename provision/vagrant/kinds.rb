# SPDX-License-Identifier: GPL-2.0-or-later
# Vagrant's side of link kinds and testbeds: one Ruby file each, found by name. links/socket.rb defines
# FirewallLab::Links::Socket. A plug-in puts its file into the checkout's .fwlab/vagrant/links/ or
# .fwlab/vagrant/testbeds/; its Python side is an entry point (fwlab.links, fwlab.testbeds).

module FirewallLab
  # The modules of one concept ("links" or "testbeds") that the checkout at `root` has.
  class Kinds
    def initialize(root, concept)
      @concept = concept
      folders = [File.join(root, ".fwlab", "vagrant", concept), File.join(__dir__, concept)]
      paths = folders.flat_map { |folder| Dir.glob("#{folder}/*.rb") }
      @files = paths.to_h { |path| [File.basename(path, ".rb"), path] }
    end

    # Those of plug-ins first.
    def names = @files.keys

    # The module of this name, or nil.
    def [](name)
      return unless @files.key?(name)

      require @files[name]
      FirewallLab.const_get(@concept.capitalize).const_get(name.split("_").map(&:capitalize).join, false)
    end

    # The name of the first whose module passes the block, or nil.
    def find = names.find { |name| yield self[name] }
  end
end
