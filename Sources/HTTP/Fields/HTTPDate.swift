/// Dates of HTTP (RFC 9110 section 5.6.7), to and from Unix seconds, independent of locale and calendar.
package enum HTTPDate {
    private static let days = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
    private static let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

    /// IMF-fixdate: `Sun, 06 Nov 1994 08:49:37 GMT`.
    package static func format(_ seconds: Int) -> String {
        let (dayNumber, time) = split(seconds)
        let date = civil(fromDays: dayNumber)
        let weekday = days[((dayNumber + 4) % 7 + 7) % 7]
        return "\(weekday), \(pad(date.day)) \(months[date.month - 1]) \(pad(date.year, to: 4)) \(time) GMT"
    }

    /// The form of RFC 3339, for logs: `1994-11-06T08:49:37.123Z`.
    package static func formatForLog(milliseconds: Int) -> String {
        let fraction = (milliseconds % 1000 + 1000) % 1000
        let (dayNumber, time) = split((milliseconds - fraction) / 1000)
        let date = civil(fromDays: dayNumber)
        return "\(pad(date.year, to: 4))-\(pad(date.month))-\(pad(date.day))T\(time).\(pad(fraction, to: 3))Z"
    }

    /// Days since 1970, and the time of the day as text.
    private static func split(_ seconds: Int) -> (days: Int, time: String) {
        let second = (seconds % 86400 + 86400) % 86400
        let time = "\(pad(second / 3600)):\(pad(second / 60 % 60)):\(pad(second % 60))"
        return ((seconds - second) / 86400, time)
    }

    /// A text with more bytes is not a date. The longest form, RFC 850's, has up to 33.
    static let maxLength = 64

    /// The Unix seconds of a date in any of the three forms (IMF-fixdate, RFC 850, asctime); nil for other text.
    ///
    /// - Parameter now: Unix seconds. A two-digit year that is more than 50 years ahead of it is in the past.
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
        let thisYear = civil(fromDays: now / 86400).year
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
        let days = daysFromCivil(year: year, month: month + 1, day: day)
        guard civil(fromDays: days).day == day else { return nil }
        return days * 86400 + hour * 3600 + minute * 60 + second
    }

    private static func number(_ digits: Substring) -> Int? {
        digits.utf8.allSatisfy { $0.digit != nil } ? Int(digits) : nil
    }

    private static func pad(_ value: Int, to width: Int = 2) -> String {
        let digits = String(value)
        return String(repeating: "0", count: max(0, width - digits.utf8.count)) + digits
    }

    // Days since 1970-01-01 in the proleptic Gregorian calendar. Years start in March, so that the leap day is the last day; an
    // era is 400 years, or 146,097 days.

    private static func daysFromCivil(year: Int, month: Int, day: Int) -> Int {
        let shifted = month > 2 ? year : year - 1
        let era = (shifted >= 0 ? shifted : shifted - 399) / 400
        let yearOfEra = shifted - era * 400
        let dayOfYear = (153 * ((month + 9) % 12) + 2) / 5 + day - 1
        return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
    }

    private static func civil(fromDays days: Int) -> (year: Int, month: Int, day: Int) {
        let shifted = days + 719_468
        let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
        let dayOfEra = shifted - era * 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let month = (5 * dayOfYear + 2) / 153
        let year = yearOfEra + era * 400 + (month < 10 ? 0 : 1)
        return (year, month < 10 ? month + 3 : month - 9, dayOfYear - (153 * month + 2) / 5 + 1)
    }
}
