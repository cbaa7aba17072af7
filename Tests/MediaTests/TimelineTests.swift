import Testing

@testable import Media

@Suite("Times of frames are mapped to times of the video")
struct TimelineTests {
    /// Where frames with these delays come to lie.
    private func times(_ delays: [Int], _ options: TimeOptions) -> [Int?] {
        var timeline = Timeline(options)
        var clock = FrameClock()
        return delays.map { delay in
            let shown = clock.advance(by: delay)
            guard let time = timeline.place(time: shown.start, duration: shown.duration), timeline.admits(time) else {
                return nil
            }
            timeline.note(time)
            return time
        }
    }

    @Test(arguments: [
        (1000, 100, 1), (2000, 200, 1), (500, 100, 2), (1500, 300, 2), (100, 100, 10), (10_000, 1000, 1), (333, 33_300, 1000),
        (1250, 500, 4),
    ])
    func everySpeedHasUnitsInWhichTimesAreWhole(_ speed: Int, _ timescale: Int, _ units: Int) {
        let timeline = Timeline(TimeOptions(speed: speed))
        #expect(timeline.timescale == timescale && timeline.length(of: 7) == 7 * units)
    }

    @Test func framesDroppedAreThoseThatComeTooSoon() {
        let delays = [2, 2, 2, 2, 2, 2, 2, 2]
        #expect(times(delays, TimeOptions(ceiling: 25_000)) == [0, nil, 4, nil, 8, nil, 12, nil])
        #expect(times(delays, TimeOptions(ceiling: 50_000)) == [0, 2, 4, 6, 8, 10, 12, 14])
        #expect(times(delays, TimeOptions(ceiling: 20_000)) == [0, nil, nil, 6, nil, nil, 12, nil])
        #expect(times([50, 2, 2, 2, 50, 2], TimeOptions(ceiling: 10_000)) == [0, 50, nil, nil, nil, 106])
        // A ceiling is of the video's time: at twice the speed, frames come twice as often.
        #expect(times(delays, TimeOptions(speed: 2000, ceiling: 50_000)) == [0, nil, 4, nil, 8, nil, 12, nil])
    }

    @Test func aPartBeginsWithTheFrameThatIsShownThen() {
        let delays = [10, 20, 30, 40]
        #expect(times(delays, TimeOptions(start: 15)) == [nil, 0, 15, 45])
        #expect(times(delays, TimeOptions(start: 10, end: 30)) == [nil, 0, nil, nil])
        #expect(times(delays, TimeOptions(end: 31)) == [0, 10, 30, nil])
        #expect(times(delays, TimeOptions(start: 100)) == [nil, nil, nil, nil])
        #expect(Timeline(TimeOptions(start: 15, end: 60)).length(of: 100) == 45)
        #expect(Timeline(TimeOptions(start: 15, end: 600)).length(of: 100) == 85)
        #expect(Timeline(TimeOptions(start: 101)).length(of: 100) <= 0)
    }

    @Test func theShortestSampleFollowsFromDelaysSpeedAndCeiling() {
        #expect(Timeline(TimeOptions()).shortestSample(3) == 3)
        #expect(Timeline(TimeOptions(speed: 500)).shortestSample(3) == 6)
        #expect(Timeline(TimeOptions(ceiling: 10_000)).shortestSample(3) == 10)
    }
}
