internal import SystemIO

/// HTTP dates (RFC 9110 section 5.6.7), converted to and from Unix seconds, independent of locale and calendar.
package enum HTTPDate {
    private static let days = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
    private static let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

    /// Formats a date as IMF-fixdate: `Sun, 06 Nov 1994 08:49:37 GMT`.
    package static func format(_ seconds: Int) -> String {
        let time = CivilTime(unixSeconds: seconds)
        let date = "\(CivilTime.digits(time.day)) \(months[time.month - 1]) \(CivilTime.digits(time.year, 4))"
        return "\(days[time.weekday]), \(date) \(time.clock) GMT"
    }

    /// The maximum length of a date in bytes. The longest form, RFC 850, has up to 33.
    static let maxLength = 64

    /// Parses a date in any of the three forms (IMF-fixdate, RFC 850, asctime) as Unix seconds; nil for other text.
    ///
    /// - Parameter now: The current Unix seconds. A two-digit year more than 50 years in the future is taken to be in the past.
    package static func parse(_ text: String, now: Int) -> Int? {
        var parts = text.split(separator: " ", omittingEmptySubsequences: true)
        guard let first = parts.first else { return nil }
        if first.hasSuffix(",") {
            parts.removeFirst()
            if parts.count == 3 { return rfc850(parts, now: now) }
            guard parts.count == 5, parts[4] == "GMT", parts[0].utf8.count == 2, parts[2].utf8.count == 4 else { return nil }
            return seconds(day: parts[0], month: parts[1], year: number(parts[2]), time: parts[3])
        }
        guard parts.count == 5, first.utf8.count == 3, parts[4].utf8.count == 4 else { return nil }
        return seconds(day: parts[2], month: parts[1], year: number(parts[4]), time: parts[3])
    }

    private static func rfc850(_ parts: [Substring], now: Int) -> Int? {
        let date = parts[0].split(separator: "-", omittingEmptySubsequences: false)
        guard parts[2] == "GMT", date.count == 3, date[2].utf8.count == 2, let short = number(date[2]) else { return nil }
        let thisYear = CivilTime(unixSeconds: now).year
        var year = thisYear - thisYear % 100 + short
        if year > thisYear + 50 { year -= 100 }
        return seconds(day: date[0], month: date[1], year: year, time: parts[1])
    }

    private static func seconds(day: Substring, month: Substring, year: Int?, time: Substring) -> Int? {
        let clock = time.split(separator: ":", omittingEmptySubsequences: false)
        guard let year, let day = number(day), let month = months.firstIndex(of: String(month)), clock.count == 3,
            clock.allSatisfy({ $0.utf8.count == 2 }),
            let hour = number(clock[0]), let minute = number(clock[1]), let second = number(clock[2]),
            (1...31).contains(day), hour < 24, minute < 60, second <= 60
        else { return nil }
        let days = CivilTime.days(toYear: year, month: month + 1, day: day)
        guard CivilTime(unixSeconds: days * 86400).day == day else { return nil }
        return days * 86400 + hour * 3600 + minute * 60 + second
    }

    private static func number(_ digits: Substring) -> Int? {
        digits.utf8.allSatisfy { $0.digit != nil } ? Int(digits) : nil
    }
}
