# SPDX-License-Identifier: GPL-2.0-or-later
# Which operating system each lab's DUT runs: that of the machine that exists, else the one that FWLAB_DUT names if the
# lab can use it, else the first that the lab's `needs` name. As in fwlab/testbed/dut_choice.py.

require "json"
require "yaml"

module FirewallLab
  class DutSystems
    def initialize(root, node, env)
      @root = root
      @images = { node.fetch("system", "linux") => node.fetch("image") }
      node.fetch("other_systems", {}).each { |name, other| @images[name] = other.fetch("image") }
      @wanted = env["FWLAB_DUT"]
      return if @wanted.nil? || @images.key?(@wanted)

      raise Problem.new("FWLAB_DUT=#{@wanted}: no DUT runs that; there are: #{@images.keys.join(', ')}",
                        "export FWLAB_DUT=#{@images.keys.first}")
    end

    def of(lab) = made(lab) || chosen(lab)

    # Raises Problem if the lab's machines have another DUT than FWLAB_DUT asks for.
    def check(lab)
      return if made(lab).nil? || @wanted.nil? || chosen(lab) == made(lab)

      raise Problem.new("the DUT of #{lab} runs #{made(lab)}; FWLAB_DUT asks for #{chosen(lab)}",
                        "vagrant destroy -f #{lab}, then the same command again (or unset FWLAB_DUT)")
    end

    # What the lab's `needs` name.
    def needed(lab)
      data = YAML.safe_load(File.read(File.join(@root, "labs", lab, "lab.yml")), aliases: true)
      systems = data.is_a?(Hash) && data["needs"].is_a?(Hash) && data["needs"]["systems"]
      systems.is_a?(Array) && !systems.empty? ? systems : [@images.keys.first]
    rescue SystemCallError, Psych::Exception
      [@images.keys.first] # fwlab reports what is wrong with the file
    end

    private

    def chosen(lab)
      systems = needed(lab)
      found = systems.include?(@wanted) ? @wanted : systems.first
      return found if @images.key?(found)

      raise Problem.new("labs/#{lab}/lab.yml: needs.systems: no DUT runs #{found}; there are: " \
                        "#{@images.keys.join(', ')}", "fix labs/#{lab}/lab.yml")
    end

    # By its box; nil if there is no DUT.
    def made(lab)
      record = JSON.parse(File.read(File.join(@root, ".fwlab", lab, "machines.json")))
      box = record.dig("machines", "dut", "box").to_s
      @images.find { |_, image| box.start_with?("fwlab-#{image}-") }&.first
    rescue SystemCallError, JSON::ParserError, TypeError, NoMethodError
      nil
    end
  end
end
