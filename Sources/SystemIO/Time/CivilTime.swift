/// A UTC date and time of day in the proleptic Gregorian calendar, independent of locale and time zones.
package struct CivilTime: Sendable {
    package let year: Int
    /// 1 to 12.
    package let month: Int
    package let day: Int
    /// 0 for Sunday.
    package let weekday: Int
    package let hour: Int
    package let minute: Int
    package let second: Int

    /// - Parameter seconds: Seconds since 1970.
    package init(unixSeconds seconds: Int) {
        let time = (seconds % 86400 + 86400) % 86400
        let days = (seconds - time) / 86400
        (hour, minute, second) = (time / 3600, time / 60 % 60, time % 60)
        weekday = ((days + 4) % 7 + 7) % 7
        // Years start in March, so that the leap day is the last day; an era is 400 years, or 146,097 days.
        let shifted = days + 719_468
        let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
        let dayOfEra = shifted - era * 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let shiftedMonth = (5 * dayOfYear + 2) / 153
        day = dayOfYear - (153 * shiftedMonth + 2) / 5 + 1
        month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
        year = yearOfEra + era * 400 + (shiftedMonth < 10 ? 0 : 1)
    }

    /// Returns the number of days from 1970-01-01 to a date.
    package static func days(toYear year: Int, month: Int, day: Int) -> Int {
        let shifted = month > 2 ? year : year - 1
        let era = (shifted >= 0 ? shifted : shifted - 399) / 400
        let yearOfEra = shifted - era * 400
        let dayOfYear = (153 * ((month + 9) % 12) + 2) / 5 + day - 1
        return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
    }

    /// Formats a time as RFC 3339, for logs: `1994-11-06T08:49:37.123Z`.
    ///
    /// - Parameter milliseconds: Milliseconds since 1970.
    package static func text(milliseconds: Int) -> String {
        let fraction = (milliseconds % 1000 + 1000) % 1000
        let time = CivilTime(unixSeconds: (milliseconds - fraction) / 1000)
        return "\(digits(time.year, 4))-\(digits(time.month))-\(digits(time.day))T\(time.clock).\(digits(fraction, 3))Z"
    }

    /// The time of day: `08:49:37`.
    package var clock: String { "\(Self.digits(hour)):\(Self.digits(minute)):\(Self.digits(second))" }

    /// Formats a number with leading zeros.
    package static func digits(_ number: Int, _ count: Int = 2) -> String {
        let text = String(number)
        return String(repeating: "0", count: max(0, count - text.utf8.count)) + text
    }
}
