# SPDX-License-Identifier: GPL-2.0-or-later

module FirewallLab
  # Calls all of `tasks` at a time and returns their values. Raises the first error once all have ended.
  def self.at_once(*tasks)
    threads = tasks.map do |task|
      Thread.new do
        [task.call, nil]
      rescue StandardError => e
        [nil, e]
      end
    end
    ended = threads.map(&:value)
    ended.each { |_, error| raise error if error }
    ended.map(&:first)
  end
end
