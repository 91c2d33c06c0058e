# SPDX-License-Identifier: GPL-2.0-or-later
# What links need on this host: names of NICs, host.yml, and provision/host/links, which makes and undoes the changes.

require "open3"
require "yaml"

module FirewallLab
  module HostLinks
    SCRIPT = File.expand_path("../host/links", __dir__)
    STATES = "/run/fwlab/links" # as in fwlab/testbed/host_links/state.py

    # The NIC that the project makes for link `index` of a lab (as in fwlab/testbed/host_links/link_on_host.py).
    def self.device(key, lab, index) = "fwl-#{key[0, 6]}-#{lab[3, 2]}#{index}"

    # What host.yml says about the links of one kind; {} if it does not. The script reports what is wrong with the file.
    def self.file(root, kind)
      data = YAML.safe_load(File.read(File.join(root, "host.yml")))
      data.is_a?(Hash) && data[kind].is_a?(Hash) ? data[kind] : {}
    rescue SystemCallError, Psych::Exception
      {}
    end

    # Does what the links of these machines need. Raises Problem.
    def self.prepare(project, machines)
      machines.group_by(&:lab).each_key do |lab|
        kinds = project.link_choice.of(lab)
        next unless changed?(project, lab) || kinds.values.any? { |kind| concerns_host?(project.link_kinds[kind]) }

        run("up", lab, *kinds.map { |name, kind| "#{name}=#{kind}" })
      end
    end

    # Undoes it. Raises Problem.
    def self.restore(project, lab)
      run("restore", lab) if changed?(project, lab)
    end

    # Whether links of this kind use something of the host.
    def self.concerns_host?(kind) = %i[host_device hand_over].any? { |method| kind.respond_to?(method) }

    def self.changed?(project, lab) = File.exist?("#{STATES}/#{project.key}-#{lab}.json")

    def self.run(*words)
      output, status = Open3.capture2e(SCRIPT, *words)
      return if status.success?

      message, hint = output.strip.split(/\n\s*next: /, 2)
      raise Problem.new(message.to_s, hint || "#{SCRIPT} #{words.join(' ')}", status.exitstatus)
    end
  end
end
