import TestSupport
import Testing

@testable import Media

/// A player that reads by decoding times delays the whole video by the time that a frame is decoded late. Browsers end a video by the
/// duration that the file names for the last frame.
@Suite("Frames of H.264 are decoded in time, and the last one has its duration") struct DecodingTimesTests {
    private func converted(_ delays: [Int], loops: Int = 1, alike: Int = 0) throws -> MP4Boxes {
        var builder = GIFBuilder(width: 64, height: 48)
        for (index, delay) in delays.enumerated() {
            builder.add(color: UInt8(1 + min(index, delays.count - 1 - alike) % 6), delay: delay)
        }
        let mp4 = try Converted(builder.finish()) { $0.time.loops = loops }.boxes
        #expect(mp4.hasOffsets && !mp4.hasEditList)
        #expect(mp4.samples.first?.time == 0)
        let still = delays.suffix(alike + 1)
        let shown = delays.dropLast(alike + 1) + (alike > 1 ? [still.dropLast(2).reduce(0, +)] + still.suffix(2) : still)
        #expect(mp4.durations == Array(repeating: shown, count: loops).flatMap { $0 })
        #expect(mp4.durationOfLast == shown.last)
        #expect(mp4.duration == delays.reduce(0, +) * loops)
        return mp4
    }

    @Test(arguments: [
        [3, 7, 2, 50, 11, 4, 133, 5, 20, 2, 9, 33], [300, 4, 4, 4, 4, 4, 4, 4, 500], [20, 65_535, 30, 40, 50],
        Array(repeating: 4, count: 40), Array(repeating: 4, count: 20) + [200],
    ]) func noFrameIsDecodedAfterItIsShown(_ delays: [Int]) throws {
        #expect(try converted(delays).leastOffset >= 0)
    }

    /// WebKit shows each picture of an `<img>` for the time from its own decoding to the next.
    @Test(arguments: [1, 2]) func withoutBFramesEachPictureIsDecodedWhenItIsShown(_ loops: Int) throws {
        let delays = [10, 4, 30, 10, 10, 7, 10, 50, 10, 10, 10, 25]
        var builder = GIFBuilder(width: 64, height: 64)
        for (index, delay) in delays.enumerated() { builder.add(color: UInt8(1 + index % 6), delay: delay) }
        let gif = builder.finish()
        #expect(try Converted(gif) { $0.time.loops = loops }.boxes.hasOffsets)
        let made = try Converted(gif) { ($0.bframes, $0.time.loops) = (.never, loops) }
        #expect(!made.boxes.hasOffsets && !made.boxes.hasEditList)
        let units = made.boxes.timescale / 100
        #expect(made.boxes.durations == Array(repeating: delays.map { $0 * units }, count: loops).flatMap(\.self))
    }

    @Test func eachRoundIsDecodedBeforeItIsShown() throws {
        #expect(try converted([5, 90, 4, 30, 8, 120, 7], loops: 3).leastOffset >= 0)
    }

    /// Frames of four hundredths each, and no trailer.
    private func evenFrames(_ count: Int) -> [UInt8] {
        var builder = GIFBuilder(width: 64, height: 48)
        for index in 0..<count { builder.add(color: UInt8(1 + index % 6), delay: 4) }
        return builder.bytes
    }

    /// Counts of samples that end at every place of the encoder's pattern of four.
    @Test(arguments: 22..<26) func noFrameBeforeARequestedEndIsDecodedLate(_ count: Int) throws {
        let mp4 = try Converted(evenFrames(40) + [0x3b]) { $0.time.end = 4 * count }.boxes
        #expect(mp4.durations == Array(repeating: 4, count: count) && mp4.leastOffset >= 0)
    }

    @Test(arguments: 22..<26) func noFrameIsDecodedLateWhereTheRateIsLimited(_ count: Int) throws {
        let mp4 = try Converted(evenFrames(2 * count) + [0x3b]) { $0.time.ceiling = 12_500 }.boxes
        #expect(mp4.durations == Array(repeating: 8, count: count) && mp4.leastOffset >= 0)
    }

    @Test(arguments: 22..<26) func noFrameOfATruncatedSourceIsDecodedLate(_ count: Int) throws {
        // The last frame lacks the end of its data.
        let mp4 = try Converted(Array(evenFrames(count + 1).dropLast(6))).boxes
        #expect(mp4.durations == Array(repeating: 4, count: count) && mp4.leastOffset >= 0)
    }

    @Test(arguments: 22..<26) func noFrameIsDecodedLateWhereOnlyTheTrailerIsMissing(_ count: Int) throws {
        let mp4 = try Converted(evenFrames(count)).boxes
        #expect(mp4.durations == Array(repeating: 4, count: count) && mp4.leastOffset >= 0)
    }

    /// Two units are less than the packets that precede the second frame have.
    @Test func shortFirstFramesAreDecodedAtMostTwoUnitsLate() throws {
        let least = try converted(Array(repeating: 2, count: 12)).leastOffset
        #expect((-2..<0).contains(least))
    }

    /// Counts of samples that end at every place of the encoder's pattern.
    @Test(arguments: 3..<9, 1..<5) func noFrameIsDecodedLateWhereTheLastOnesLookAlike(_ count: Int, alike: Int) throws {
        let delays = (0..<count).map { 4 + $0 % 3 } + [150, 30, 20, 10, 25].prefix(alike + 1)
        #expect(try converted(delays, alike: alike).leastOffset >= 0)
    }

    @Test(arguments: 1...2) func aPictureThatStaysAfterAtMostOneOtherIsOneSample(_ count: Int) throws {
        var builder = GIFBuilder(width: 64, height: 48)
        for index in 0..<6 { builder.add(color: UInt8(1 + min(index, count - 1)), delay: 10) }
        let mp4 = try Converted(builder.finish()).boxes
        #expect(mp4.durations == (count == 1 ? [60] : [10, 50]) && mp4.leastOffset >= 0)
    }
}
