import TestSupport
import Testing

@testable import Media

@Suite("Times of frames are mapped to times of the video")
struct TimelineTests {
    /// Where frames with these delays come to lie.
    private func times(_ delays: [Int], _ options: TimeOptions) -> [Int?] {
        var timeline = Timeline(options)
        return delays.map { delay in timeline.advance(by: delay).flatMap { timeline.admit($0) } }
    }

    /// The length of the part, for frames of this duration in all.
    private func length(of duration: Int, _ options: TimeOptions) -> Int {
        var timeline = Timeline(options)
        _ = timeline.advance(by: duration)
        return timeline.length
    }

    @Test(arguments: [
        (1000, 100, 1), (2000, 200, 1), (500, 100, 2), (1500, 300, 2), (100, 100, 10), (10_000, 1000, 1), (333, 33_300, 1000),
        (1250, 500, 4),
    ])
    func everySpeedHasUnitsInWhichTimesAreWhole(_ speed: Int, _ timescale: Int, _ units: Int) {
        let options = TimeOptions(speed: speed)
        #expect(Timeline(options).timescale == timescale && length(of: 7, options) == 7 * units)
    }

    @Test func framesDroppedAreThoseThatComeTooSoon() {
        let delays = [2, 2, 2, 2, 2, 2, 2, 2]
        #expect(times(delays, TimeOptions(ceiling: 25_000)) == [0, nil, 4, nil, 8, nil, 12, nil])
        #expect(times(delays, TimeOptions(ceiling: 50_000)) == [0, 2, 4, 6, 8, 10, 12, 14])
        #expect(times(delays, TimeOptions(ceiling: 20_000)) == [0, nil, nil, 6, nil, 10, nil, nil])
        // A ceiling is of the video's time: at twice the speed, frames come twice as often.
        #expect(times(delays, TimeOptions(speed: 2000, ceiling: 50_000)) == [0, nil, 4, nil, 8, nil, 12, nil])
    }

    /// A pause after a short frame must not show that frame instead.
    @Test func aLongFrameThatComesTooSoonStartsLater() {
        #expect(times([50, 2, 2, 2, 50, 2], TimeOptions(ceiling: 10_000)) == [0, 50, nil, nil, 60, 106])
        #expect(times([200, 2, 500], TimeOptions(ceiling: 10_000)) == [0, 200, 210])
        #expect(times([2, 500], TimeOptions(ceiling: 10_000)) == [0, 10])
        #expect(times([2, 9, 50], TimeOptions(ceiling: 10_000)) == [0, nil, 11])
        #expect(times([2, 10, 50], TimeOptions(ceiling: 10_000)) == [0, 10, 20])
        #expect(times([7, 7, 7, 7], TimeOptions(ceiling: 30_000)) == [0, 7, 14, 21])
    }

    @Test func aPartBeginsWithTheFrameThatIsShownThen() {
        let delays = [10, 20, 30, 40]
        #expect(times(delays, TimeOptions(start: 15)) == [nil, 0, 15, 45])
        #expect(times(delays, TimeOptions(start: 10, end: 30)) == [nil, 0, nil, nil])
        #expect(times(delays, TimeOptions(end: 31)) == [0, 10, 30, nil])
        #expect(times(delays, TimeOptions(start: 100)) == [nil, nil, nil, nil])
        #expect(length(of: 100, TimeOptions(start: 15, end: 60)) == 45)
        #expect(length(of: 100, TimeOptions(start: 15, end: 600)) == 85)
        #expect(length(of: 100, TimeOptions(start: 101)) <= 0)
    }

    @Test func aRateJustBelowThatOfTheFramesDropsFewOfThem() {
        let thirty = times(Array(repeating: 3, count: 1000), TimeOptions(ceiling: 30_000)).compactMap { $0 }
        #expect(thirty.count == 900)
        #expect(zip(thirty, thirty.dropFirst()).allSatisfy { (3...6).contains($1 - $0) })
        #expect(times(Array(repeating: 4, count: 1000), TimeOptions(ceiling: 24_000)).compactMap { $0 }.count == 960)
    }

    /// However the frames come, there are no more of them than the rate allows, and no two are closer than half of its distance.
    @Test(arguments: 1...20) func aRateIsNotExceededOnAverage(_ seed: UInt64) {
        var random = SeededNumbers(seed: seed)
        let delays = (0..<400).map { _ in
            Int.random(in: 2...9, using: &random) * (Int.random(in: 0...30, using: &random) == 0 ? 20 : 1)
        }
        for ceiling in [7000, 10_000, 23_976, 30_000, 50_000] {
            let times = times(delays, TimeOptions(ceiling: ceiling)).compactMap { $0 }
            for first in stride(from: 0, to: times.count, by: 7) {
                for last in first..<min(times.count, first + 60) {
                    // Two more than the whole distances: one at each end.
                    #expect((last - first - 2) * 100_000 <= (times[last] - times[first]) * ceiling)
                }
            }
            #expect(zip(times, times.dropFirst()).allSatisfy { 2 * ($1 - $0) * ceiling >= 100_000 })
        }
    }

    private func plan(
        _ delays: [Int], _ options: TimeOptions, isWhole: Bool = true, hasMarker: Bool = true
    ) throws -> SamplePlan {
        var builder = GIFBuilder(width: 4, height: 4)
        for delay in delays { builder.add(color: 1, delay: delay) }
        let gif = isWhole && hasMarker ? builder.finish() : builder.bytes.dropLast(isWhole ? 0 : 2)
        return try gif.withUnsafeBytes {
            SamplePlan(options, of: try AnimationSummary(scanning: $0, by: GIFReader.self, limits: MediaLimits()))
        }
    }

    @Test func thePlanCountsTheFramesOfThePartAndKnowsItsShortestDistance() throws {
        let plan = try plan([10, 3, 5, 40, 2, 20], TimeOptions())
        #expect(plan.count == 6 && plan.first == 1 && plan.lastButOne == 58 && plan.shortest == 2)
        let part = try self.plan([10, 3, 5, 40, 2, 20], TimeOptions(start: 14, end: 50))
        #expect(part.count == 2 && part.first == 3 && part.lastButOne == 0 && part.shortest == 4)
        #expect(try self.plan([10, 3, 5, 40, 2, 20], TimeOptions(speed: 500, start: 14, end: 50)).shortest == 8)
        #expect(try self.plan([3, 3, 3, 3, 3, 3], TimeOptions(ceiling: 10_000)).shortest == 12)
        #expect(try self.plan([10, 20, 5], TimeOptions(), isWhole: false).count == 2)
        #expect(try self.plan([10, 20, 5], TimeOptions(start: 35)).count == 0)
        #expect(try self.plan([7], TimeOptions()).shortest == 7)
    }

    /// Of several frames, the one in which the file breaks off does not count.
    @Test func thePlanHasTheOnlyFrameAndThatBeforeAMissingEndMarker() throws {
        #expect(try plan([7], TimeOptions(), isWhole: false) == plan([7], TimeOptions()))
        #expect(try plan([10, 20, 5], TimeOptions(), isWhole: false) == plan([10, 20], TimeOptions()))
        for delays in [[7], [10, 20, 5]] {
            #expect(try plan(delays, TimeOptions(), hasMarker: false) == plan(delays, TimeOptions()))
        }
    }

    @Test func thePlanKnowsHowLongTheLastFrameLasts() throws {
        #expect(try plan([10, 20, 5], TimeOptions()).lastDuration == 5)
        #expect(try plan([7], TimeOptions()).lastDuration == 7)
        #expect(try plan([10, 20, 5], TimeOptions(), isWhole: false).lastDuration == 20)
    }

    /// Where the animation is repeated, its first frame follows the last one.
    @Test func theSeamOfRepetitionsCountsForTheShortestDistance() throws {
        #expect(try plan([10, 20, 5], TimeOptions()).shortest == 10)
        #expect(try plan([10, 20, 5], TimeOptions(loops: 2)).shortest == 5)
    }

    /// The number of frames that become samples, one in every `distance` units of the source.
    private func samples(of count: Int, every distance: Double, _ timeline: Timeline) -> Int {
        var timeline = timeline
        var samples = 0
        func time(_ index: Int) -> Int { Int((Double(index) * distance).rounded()) }
        for index in 0..<count {
            if let span = timeline.advance(by: time(index + 1) - time(index)), timeline.admit(span) != nil { samples += 1 }
        }
        return samples
    }

    @Test func roundedTimesDoNotExceedTheFrameRate() {
        let limit = TimeOptions(ceiling: 30_000)
        let rounded = Timeline(limit, source: 1_000_000, isSourceRounded: true)
        #expect(samples(of: 60, every: 1_000_000 / 30, rounded) == 60)
        #expect(samples(of: 60, every: 1_000_000 / 31, rounded) == 58)
        // A second of the source takes two of the video, so that twice as many frames are within the limit.
        let slow = Timeline(TimeOptions(speed: 500, ceiling: 30_000), source: 1_000_000, isSourceRounded: true)
        #expect(samples(of: 60, every: 1_000_000 / 60, slow) == 60)
        // At this speed, twenty milliseconds have no whole number of units, of which the long frame allows a thousand per second.
        let long = Timeline(TimeOptions(speed: 333, ceiling: 16_650), source: 1000, longestFrame: 16_777_215)
        #expect(long.timescale == 1000 && samples(of: 60, every: 20, long) == 60)
        // Exact times are compared exactly.
        #expect(samples(of: 60, every: 33_333, Timeline(limit, source: 1_000_000)) == 59)
    }

    /// Truncated times would let a video end up to a unit early.
    @Test(arguments: [333, 667, 7001]) func roundedTimesAreTheNearest(_ speed: Int) throws {
        var timeline = Timeline(TimeOptions(speed: speed), source: 1000, longestFrame: 1 << 24)
        var time = 0
        for delay in [100, 71, 230, 1999, 1 << 24, 47, 83] {
            let advanced = timeline.advance(by: delay)
            let span = try #require(advanced)
            for (rounded, exact) in [(span.start, time), (span.end, time + delay)] {
                #expect(abs(rounded * speed - exact * timeline.timescale) * 2 <= speed, "\(exact)")
            }
            time += delay
        }
        #expect(abs(timeline.length * speed - time * timeline.timescale) * 2 <= speed)
    }

    @Test func framesThatRoundingGivesOneTimeAreOneSample() {
        let coarse = Timeline(TimeOptions(speed: 333, ceiling: 60_000), longestFrame: 1_000_000_000)
        #expect(coarse.timescale == 1 && samples(of: 10, every: 2, coarse) == 2)
    }

    /// The times of an image's pictures, and its end.
    private func shown(_ delays: [Int], source: Int, speed: Int = 1000, timescale: Int?) -> (times: [Int?], end: Int) {
        let clock = FrameClock(timescale: source, replacesShortDelays: false)
        var timeline = Timeline(
            TimeOptions(speed: speed), source: source, longestFrame: delays.max() ?? 0, clock: clock,
            duration: delays.reduce(0, +), .image(timescale: timescale))
        let times = delays.indices.map { index -> Int? in
            guard let span = timeline.advance(by: delays[index]), let time = timeline.admit(span) else { return nil }
            return timeline.show(time, span, isLast: index == delays.count - 1)
        }
        return (times, timeline.length)
    }

    /// Browsers show a picture of up to 10 ms for 100 ms. So none of an image is as short, and the whole lasts as long as the source.
    @Test(arguments: [100, 1000, nil] as [Int?], [60, 90, 100, 120, 144, 240, 1000])
    func noPictureOfAnImageIsTooShortAndTheWholeLastsAsLongAsTheSource(_ timescale: Int?, _ rate: Int) {
        let source = 3600 * 1000
        for count in [24, 25, 59, 120] {
            let (times, end) = shown(Array(repeating: source / rate, count: count), source: source, timescale: timescale)
            let units = timescale ?? source
            let shortest = (11 * units + 999) / 1000
            let ends = times.compactMap { $0 }.dropFirst() + [end]
            #expect(zip(times.compactMap { $0 }, ends).allSatisfy { $1 - $0 >= shortest })
            #expect(end == (count * units + rate / 2) / rate || timescale == nil)
            #expect(end * rate == count * units || timescale != nil)
            // What is seen at the end of one play is the last picture.
            #expect(times[count - 1] != nil || end < 2 * shortest)
            // No slow motion: as many pictures as fit.
            #expect(times.compactMap { $0 }.count >= min(count, end / (2 * shortest)))
        }
    }

    @Test func picturesOfAnImageThatAreLongEnoughKeepTheirTimes() {
        let delays = [7, 2, 2, 30, 3, 2]
        #expect(shown(delays, source: 100, timescale: 100).times == [0, 7, 9, 11, 41, 44])
        #expect(shown(delays, source: 100, timescale: 1000).times == [0, 70, 90, 110, 410, 440])
        // At twice the speed, a picture in five of 10 ms each is left out, or comes later. The last one comes earlier.
        #expect(shown([2, 2, 2, 2, 2], source: 100, speed: 2000, timescale: 1000).times == [0, 11, 22, nil, 39])
        #expect(shown([50, 1], source: 100, timescale: 1000).times == [0, 499])
        #expect(shown([1], source: 100, timescale: 1000).times == [0])
        #expect(shown([1, 1], source: 1000, timescale: 100).times == [0, nil])
    }
}
