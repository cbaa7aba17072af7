import TestSupport
import Testing

@Suite("Videos play at their first request of a range", .timeLimit(.minutes(10))) struct PlaybackTests {
    /// Safari asks for two bytes first, and plays nothing where the answer is not 206 with a whole Content-Range. Then it
    /// asks for the file from the start to its known end, and for pieces of it, each on a connection of its own.
    @Test func safariGetsTheVideoByRanges() throws {
        let gif = GIFBuilder.noise(frames: 12, width: 160, height: 120)
        let origin = try LoopbackOrigin(["/a.gif": { _ in .ok(gif) }])
        defer { origin.stop() }
        let server = try GifreelProcess()
        let browser = ["Accept: */*", "Accept-Encoding: identity", "Sec-Fetch-Dest: video", "X-Playback-Session-Id: 1"]
        func ask(_ range: String, _ more: [String] = []) throws -> RawHTTPResponse {
            try server.mp4(origin.url("/a.gif"), headers: browser + ["Range: bytes=\(range)"] + more)
        }
        // The very first request makes the video.
        let probe = try ask("0-1")
        #expect(probe.status == 206 && probe.body.count == 2 && probe["content-length"] == "2")
        #expect(probe["content-type"] == "video/mp4" && probe["accept-ranges"] == "bytes")
        #expect(probe["content-encoding"] == nil && probe["transfer-encoding"] == nil)
        let range = try #require(probe["content-range"])
        let length = try #require(Int(range.split(separator: "/").last ?? ""))
        #expect(range == "bytes 0-1/\(length)" && length > 4096)
        let tag = try #require(probe["etag"])
        let whole = try ask("0-\(length - 1)", ["If-Range: \(tag)"])
        #expect(
            whole.status == 206 && whole.body.count == length && whole["content-range"] == "bytes 0-\(length - 1)/\(length)")
        #expect(try MP4Boxes(whole.body).durations.count == 12)
        // It breaks off and goes on elsewhere; all pieces are of one file.
        var pieces: [UInt8] = []
        for start in stride(from: 0, to: length, by: 4096) {
            let end = min(start + 4096, length) - 1
            let piece = try ask("\(start)-\(end)", ["If-Range: \(tag)"])
            #expect(piece.status == 206 && piece["etag"] == tag)
            pieces += piece.body
        }
        #expect(pieces == whole.body)
        let tail = try ask("\(length - 10)-\(length + 5000)")
        #expect(tail.status == 206 && tail.body == Array(whole.body.suffix(10)))
        #expect(origin.count("/a.gif") == 1)
    }
}
