internal import SystemIO

/// Shows the progress of a run on standard error: on a terminal as one line with a bar that is redrawn, otherwise as a plain
/// line every ten seconds.
package final class ProgressDisplay: Sendable {
    private let run: PrewarmRun
    private let isTerminal: Bool
    private let began = ContinuousClock.now
    private let thread: RepeatingThread

    package init(_ run: PrewarmRun, isTerminal: Bool) {
        self.run = run
        self.isTerminal = isTerminal
        thread = RepeatingThread(every: isTerminal ? .milliseconds(200) : .seconds(10))
    }

    /// Starts the thread that shows the progress.
    package func start() {
        thread.start(name: "gifreel-progress") { [self] in
            // A plain line at once would say nothing.
            if isTerminal || ContinuousClock.now - began >= .seconds(1) { show(ends: false) }
        }
    }

    /// Stops the thread, shows the final state, and ends the line.
    package func finish() {
        thread.close()
        show(ends: true)
    }

    private func show(ends: Bool) {
        let line = Self.line(
            run.totals, of: run.entries.count, resumed: run.resumed, elapsed: ContinuousClock.now - began,
            columns: isTerminal ? StandardError.columns : nil)
        // On a terminal the line replaces the previous one; EL (ECMA-48) erases what remains of the previous line.
        let text = isTerminal ? "\r\(line)\u{1B}[K" + (ends ? "\n" : "") : line + "\n"
        StandardError.write(text)
    }

    /// `█████░░░░░ 250/500  12.3/s  0:20 left  hits 10  new 215  failed 25  saved 12.3 MB`
    ///
    /// - Parameter columns: The width of the terminal; nil for a line without a bar. The next line could not replace a longer one.
    static func line(_ totals: PrewarmTotals, of count: Int, resumed: Int, elapsed: Duration, columns: Int?) -> String {
        let seconds = elapsed / .seconds(1)
        let rate = seconds > 0 ? Double(totals.done - resumed) / seconds : 0
        let left = rate > 0 ? NumberText.clock(Int((Double(count - totals.done) / rate).rounded(.up))) : "–"
        let numbers = [
            "\(totals.done)/\(count)", "\(NumberText.oneDecimal(rate))/s", "\(left) left", "hits \(totals.hits)",
            "new \(totals.new)", "failed \(totals.failed)", "saved \(NumberText.bytes(totals.saved))",
        ].joined(separator: "  ")
        guard let columns else { return numbers }
        // The last column stays free: some terminals begin a new line after it.
        let width = min(24, columns - 2 - numbers.count)
        guard width >= 4 else { return String(numbers.prefix(columns - 1)) }
        let filled = totals.done * width / max(1, count)
        return String(repeating: "█", count: filled) + String(repeating: "░", count: width - filled) + " " + numbers
    }
}
