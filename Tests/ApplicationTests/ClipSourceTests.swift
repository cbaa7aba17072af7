import Foundation
import TestSupport
import Testing

@Suite("Short videos are sources of a server", .timeLimit(.minutes(5))) struct ClipSourceTests {
    private static func clip(_ codec: [String], _ fileExtension: String, seconds: String = "1") throws -> [UInt8] {
        try FFmpeg.make(["-f", "lavfi", "-i", "testsrc2=s=96x64:r=10:d=\(seconds)"] + codec, fileExtension)
    }

    @Test func fetchedAndUploadedClipsAreConverted() throws {
        let clips = [
            "mp4": try Self.clip(["-c:v", "libx264", "-pix_fmt", "yuv420p"], "mp4"),
            "mov": try Self.clip(["-c:v", "libx264", "-pix_fmt", "yuv420p"], "mov"),
            "webm": try Self.clip(["-c:v", "libvpx-vp9", "-b:v", "300k"], "webm"),
            "avif": try Self.clip(["-c:v", "libaom-av1", "-cpu-used", "8"], "avif"),
        ]
        let origin = try LoopbackOrigin()
        for (name, bytes) in clips { origin.on("/a.\(name)", .ok(bytes)) }
        defer { origin.stop() }
        let server = try GifreelProcess()
        for (name, bytes) in clips {
            for format in ["mp4", "jpg"] {
                let fetched = try server.request("GET", "/\(format)/\(origin.url("/a.\(name)"))")
                #expect(fetched.status == 200, "\(name): \(fetched.text.prefix(200))")
                let uploaded = try server.request("POST", "/\(format)", body: bytes)
                #expect(uploaded.status == 200 && uploaded.body == fetched.body, "\(name)")
            }
            let facts = try server.request("GET", "/json/\(origin.url("/a.\(name)"))")
            let document = try #require(try JSONSerialization.jsonObject(with: Data(facts.body)) as? [String: Any])
            let source = try #require(document["source"] as? [String: Any])
            #expect(source["type"] as? String == name && source["frames"] as? Int == 10 && source["duration"] as? Double == 1)
            #expect(source["complete"] as? Bool == true)
        }
    }

    /// Each picture is shown for less than 10 ms.
    @Test func clipsOf120PicturesPerSecondHaveFacts() throws {
        let clip = try FFmpeg.make(
            ["-f", "lavfi", "-i", "testsrc2=s=96x64:r=120:d=0.5", "-c:v", "libx264", "-pix_fmt", "yuv420p"], "mp4")
        let origin = try LoopbackOrigin()
        origin.on("/a.mp4", .ok(clip))
        defer { origin.stop() }
        let server = try GifreelProcess(["flashes.limit=warn"])
        for target in ["json", "json,facts=flashes", "json,facts=fingerprints", "html", "mp4,width=48"] {
            let answer = try server.request("GET", "/\(target)/\(origin.url("/a.mp4"))")
            #expect(answer.status == 200, "\(target): \(answer.text.prefix(200))")
        }
        let facts = try server.request("GET", "/json/\(origin.url("/a.mp4"))")
        #expect(facts["cache-status"] == "gifreel; hit")
        let document = try #require(try JSONSerialization.jsonObject(with: Data(facts.body)) as? [String: Any])
        let source = try #require(document["source"] as? [String: Any])
        #expect(source["duration"] as? Double == 0.5)
        #expect(source["delays"] as? [Double] == Array(repeating: 1.0 / 120, count: 60))
    }

    @Test func whatIsRefusedIsSaid() throws {
        let server = try GifreelProcess(["limits.clip_duration=900ms", "sources.formats=gif,mp4"])
        let long = try server.request("POST", "/mp4", body: Self.clip(["-c:v", "libx264", "-pix_fmt", "yuv420p"], "mp4"))
        #expect(long.status == 422 && long.text.contains("too_large"))
        #expect(long.text.contains("the duration of the clip in hundredths of a second is 100, and the limit is 90"))
        let webm = try server.request("POST", "/mp4", body: Self.clip(["-c:v", "libvpx-vp9"], "webm", seconds: "0.2"))
        #expect(
            webm.status == 415 && webm.text.contains("not_an_animation") && webm.text.contains("This server takes no WebM."))
        let codec = try server.request("POST", "/mp4", body: Self.clip(["-c:v", "mpeg4"], "mp4", seconds: "0.2"))
        #expect(codec.status == 422 && codec.text.contains("\"unsupported\""))
    }

    /// Files whose headers claim more than there is.
    @Test func hostileClipsCostLittle() throws {
        let server = try GifreelProcess()
        let sound = try Self.clip(["-c:v", "libx264", "-pix_fmt", "yuv420p"], "mp4", seconds: "0.3")
        func place(_ type: String) -> Int {
            let name = Array(type.utf8)
            return (0..<sound.count - 4).first { Array(sound[$0..<$0 + 4]) == name } ?? 0
        }
        func changed(_ type: String, _ offset: Int, _ bytes: [UInt8]) -> [UInt8] {
            var file = sound
            for (index, byte) in bytes.enumerated() { file[place(type) + offset + index] = byte }
            return file
        }
        let all: [UInt8] = [0xff, 0xff, 0xff, 0xff]
        func box(_ type: String, _ body: [UInt8]) -> [UInt8] {
            let count = UInt32(8 + body.count)
            return (0..<4).map { UInt8(truncatingIfNeeded: count >> UInt32(24 - 8 * $0)) } + Array(type.utf8) + body
        }
        let head = box("ftyp", Array("isom".utf8) + [0, 0, 2, 0] + Array("isom".utf8))
        var nested = box("trak", [])
        for _ in 0..<2000 { nested = box("moov", nested) }
        let track = Array(sound[(place("trak") - 4)...].prefix(400))
        let files: [[UInt8]] = [
            // A size of 2⁶³, as many samples, chunks and edits as 32 bits have, and sides of 65,535 pixels.
            head + [0, 0, 0, 1] + Array("moov".utf8) + [0x7f] + Array(repeating: 0xff, count: 7),
            changed("stsz", 12, all), changed("stco", 8, all), changed("stts", 8, all), changed("elst", 8, all),
            changed("stsz", 8, all), changed("stsc", 8, all), changed("avc1", 28, [0xff, 0xff, 0xff, 0xff]),
            changed("mdhd", 16, [0, 0, 0, 0]), changed("mdhd", 16, all), changed("tkhd", 20, all),
            // Boxes in boxes, and thousands of tracks.
            head + nested, head + box("moov", (0..<3000).flatMap { _ in track }),
            // Elements of unknown size in one another.
            [0x1a, 0x45, 0xdf, 0xa3, 0x80]
                + (0..<500).flatMap { _ in [0x18, 0x53, 0x80, 0x67, 0x01, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff] as [UInt8] },
        ]
        for (index, file) in files.enumerated() {
            let answer = try server.request("POST", "/mp4", body: file)
            #expect([200, 415, 422].contains(answer.status), "file \(index): \(answer.status) \(answer.text.prefix(300))")
            #expect(!answer.text.contains("crashed"), "file \(index): \(answer.text.prefix(300))")
        }
        #expect(try server.request("POST", "/mp4", body: sound).status == 200)
    }
}
