# SPDX-License-Identifier: GPL-2.0-or-later
# Which kind each link of a lab has: that of the machines that exist, else FWLAB_LINK for all links, else what
# topology.yml says. As in fwlab/testbed/link_choice.py.

require "json"

module FirewallLab
  class LinkChoice
    # `kinds`: see kinds.rb.
    def initialize(root, kinds, links, env)
      @root = root
      @kinds = kinds
      @usual = links.transform_values { |link| link["kind"] }
      @forced = env["FWLAB_LINK"]
      return if @forced.nil? || @kinds[@forced]

      raise Problem.new("FWLAB_LINK=#{@forced}: unknown link kind; there are: #{@kinds.names.sort.join(', ')}",
                        "export FWLAB_LINK=socket")
    end

    # {link: kind}
    def of(lab) = requested.merge(made(lab).select { |name, kind| @usual.key?(name) && @kinds[kind] })

    # Raises Problem if the lab's machines have other links than FWLAB_LINK asks for.
    def check(lab)
      found = made(lab).values.uniq
      return if @forced.nil? || found.empty? || found == [@forced]

      raise Problem.new("the links of #{lab} are #{found.sort.join('+')}; FWLAB_LINK asks for #{@forced}",
                        "vagrant destroy -f #{lab}, then the same command again (or unset FWLAB_LINK)")
    end

    private

    def requested
      @usual.to_h do |name, kind|
        raise unknown(name, kind) unless @forced || @kinds[kind]

        [name, @forced || kind]
      end
    end

    def unknown(name, kind)
      Problem.new("topology.yml: links.#{name}.kind: unknown link kind #{kind}; there are: " \
                  "#{@kinds.names.sort.join(', ')}", "fix topology.yml")
    end

    # By the record of what `vagrant up` made. One from before it named each link has a single kind for all.
    def made(lab)
      record = JSON.parse(File.read(File.join(@root, ".fwlab", lab, "machines.json")))
      record["machines"].values.reduce({}) do |found, machine|
        found.merge(machine["links"] || @usual.transform_values { machine["link"] })
      end
    rescue SystemCallError, JSON::ParserError, TypeError, NoMethodError
      {}
    end
  end
end
