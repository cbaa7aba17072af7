import Foundation
import TestSupport
import Testing

@Suite("Formats and options of renditions", .timeLimit(.minutes(10))) struct FormatTests {
    private let gif = GIFBuilder.animation(frames: 6, width: 33, height: 21, delay: 7)

    private func json(_ answer: RawHTTPResponse) throws -> [String: Any] {
        try #require(try JSONSerialization.jsonObject(with: Data(answer.body)) as? [String: Any])
    }

    private func starts(_ format: String) -> [UInt8] {
        switch format {
        case "jpg": [0xff, 0xd8, 0xff, 0xe0]
        case "png": [0x89, 0x50, 0x4e, 0x47]
        default: Array("RIFF".utf8)
        }
    }

    @Test(arguments: [("jpg", "image/jpeg"), ("png", "image/png"), ("webp", "image/webp")])
    func aPosterIsStoredAndAddressedByItsContent(_ format: String, _ type: String) throws {
        let origin = try LoopbackOrigin(["/a.gif": { _ in .ok(gif) }])
        defer { origin.stop() }
        let server = try GifreelProcess(["mounts.media.origin=\(origin.url("/"))"])
        let made = try server.request("GET", "/\(format),frame=2/\(origin.url("/a.gif"))")
        #expect(made.status == 200 && made["content-type"] == type && made["cache-status"] == "gifreel; fwd=miss; stored")
        #expect(made.body.starts(with: starts(format)))
        let again = try server.request("GET", "/\(format)?frame=2&url=\(origin.url("/a.gif"))")
        #expect(again["cache-status"] == "gifreel; hit" && again.body == made.body && again["etag"] == made["etag"])
        let first = try server.request("GET", "/\(format)/\(origin.url("/a.gif"))")
        #expect(first.status == 200 && first.body != made.body)
        let swapped = try server.request("GET", "/media/a.\(format)?frame=2")
        #expect(swapped.status == 200 && swapped.body == made.body)
        let posted = try server.request("POST", "/\(format),frame=2", body: gif)
        let address = try #require(posted["content-location"])
        #expect(posted.body == made.body && address.hasSuffix(".\(format)"))
        let stored = try server.request("GET", address)
        #expect(stored.body == made.body && stored["content-type"] == type)
        #expect(stored["cache-control"] == "public, max-age=31536000, immutable")
        #expect(try server.request("GET", address.replacingOccurrences(of: ".\(format)", with: ".mp4")).status == 404)
    }

    @Test(arguments: [("webm", "video/webm"), ("avif", "image/avif"), ("awebp", "image/webp"), ("gif", "image/gif")])
    func moreVideosAreMadeStoredAndListed(_ format: String, _ type: String) throws {
        // An AVIF that is larger than its source is not listed. Decoders skip what is behind the trailer.
        let gif = gif + [UInt8](repeating: 0, count: 20_000)
        let origin = try LoopbackOrigin(["/a.gif": { _ in .ok(gif) }])
        defer { origin.stop() }
        let server = try GifreelProcess(["mounts.media.origin=\(origin.url("/"))", "admin.token=secret"])
        let made = try server.request("GET", "/\(format),speed=2/\(origin.url("/a.gif"))")
        #expect(made.status == 200 && made["content-type"] == type && made["cache-status"] == "gifreel; fwd=miss; stored")
        let signatures: [String: [UInt8]] = [
            "webm": [0x1a, 0x45, 0xdf, 0xa3], "avif": [0, 0, 0, 44] + Array("ftypavis".utf8), "awebp": Array("RIFF".utf8),
            "gif": Array("GIF89a".utf8),
        ]
        #expect(made.body.starts(with: try #require(signatures[format])))
        let range = try server.request("GET", "/\(format),speed=2/\(origin.url("/a.gif"))", headers: ["Range: bytes=0-1"])
        #expect(range.status == 206 && range.body == Array(made.body.prefix(2)))
        let name = format == "gif" ? "gif.gif" : format
        let swapped = try server.request("GET", "/media/a.\(name)?speed=2")
        #expect(swapped.status == 200 && swapped.body == made.body)
        let posted = try server.request("POST", "/\(format),speed=2", body: gif)
        let address = try #require(posted["content-location"])
        #expect(posted.body == made.body && address.hasSuffix(".\(format)"))
        let stored = try server.request("GET", address)
        #expect(stored.body == made.body && stored["content-type"] == type)
        #expect(try server.request("GET", "/\(format),bg=000000/\(origin.url("/a.gif"))").status == 400)
        // Prewarmed with default options, it is listed with its size.
        let entry = "{\"url\":\"\(origin.url("/a.gif"))\",\"format\":\"\(format)\"}"
        let list = try server.request(
            "POST", "/prewarm", headers: ["Authorization: Bearer secret", "Content-Type: application/x-ndjson"],
            body: Array(entry.utf8))
        #expect(list.status == 202)
        func facts() throws -> [String: Any] {
            let document = try json(try server.request("GET", "/json/\(origin.url("/a.gif"))"))
            return try #require((document["renditions"] as? [String: Any])?[format] as? [String: Any])
        }
        try blockUntil("the prewarmed rendition is listed") { try facts()["bytes"] != nil }
        let listed = try facts()
        #expect(listed["width"] as? Int == 33 && listed["height"] as? Int == 21)
        #expect(listed["duration"] as? Double == 0.42)
    }

    @Test func framesPastTheEndAreOneCacheEntry() throws {
        let origin = try LoopbackOrigin(["/a.gif": { _ in .ok(gif) }, "/b.gif": { _ in .ok(gif) }])
        defer { origin.stop() }
        let server = try GifreelProcess(["admin.token=secret"])
        let facts = try json(try server.request("GET", "/json/\(origin.url("/a.gif"))"))
        let frames = try #require((facts["source"] as? [String: Any])?["frames"] as? Int)
        func objects() throws -> Int? {
            try json(try server.request("GET", "/cache", headers: ["Authorization: Bearer secret"]))["objects"] as? Int
        }
        let last = try server.request("GET", "/png,frame=\(frames - 1)/\(origin.url("/a.gif"))")
        let count = try objects()
        let past = try server.request("GET", "/png,frame=\(frames)/\(origin.url("/a.gif"))")
        #expect(past.status == 200 && past.body == last.body && past["etag"] == last["etag"])
        for frame in [frames, frames + 1, 4711, 999_999_999, 4711] {
            let answer = try server.request("GET", "/png,frame=\(frame)/\(origin.url("/a.gif"))")
            #expect(answer["cache-status"] == "gifreel; hit" && answer.body == last.body, "\(frame)")
        }
        #expect(try objects() == count && origin.count("/a.gif") == 3)
        // Also where the first request is for a frame past the end.
        let other = try server.request("GET", "/png,frame=4711/\(origin.url("/b.gif"))")
        #expect(other.body == last.body)
        #expect(try objects() == count)
        let before = try server.request("GET", "/png,frame=1/\(origin.url("/b.gif"))")
        #expect(before.status == 200 && before.body != last.body)
    }

    @Test func optionsReachTheVideo() throws {
        let server = try GifreelProcess()
        let answer = try server.request("POST", "/mp4,width=16,speed=2,loops=2,start=0.07,end=0.35", body: gif)
        let boxes = try MP4Boxes(answer.body)
        #expect(boxes.width == 16 && boxes.height == 10)
        #expect(boxes.timescale == 200 && boxes.durations == Array(repeating: 7, count: 8))
    }

    @Test func optionsThatCannotBeAreRefusedByName() throws {
        let server = try GifreelProcess()
        let cases = [
            ("/mp4,width=1", "width"), ("/png,quality=50", "quality"), ("/jpg?speed=2", "speed"), ("/json,width=30", "width"),
            ("/mp4,frame=1", "frame"), ("/mp4,fit=cover", "fit"), ("/mp4,start=0.42", "start"), ("/webp,widht=30", "widht"),
        ]
        for (target, name) in cases {
            let answer = try server.request("POST", target, body: gif)
            #expect(answer.status == 400, "\(target)")
            let problem = try json(answer)
            #expect(problem["code"] as? String == "bad_option")
            #expect((problem["detail"] as? String)?.contains("“\(name)”") == true, "\(target)")
        }
    }

    @Test func factsTellOfTheGIFAndOfWhatThereIs() throws {
        let origin = try LoopbackOrigin(["/a.gif": { _ in .ok(gif) }])
        defer { origin.stop() }
        let server = try GifreelProcess()
        let url = origin.url("/a.gif")
        let before = try server.request("GET", "/json/\(url)")
        #expect(before.status == 200 && before["content-type"] == "application/json")
        #expect(before["cache-status"] == "gifreel; fwd=miss; stored")
        #expect(server.storedObjects().isEmpty, "nothing is encoded")
        let source = try #require(try json(before)["source"] as? [String: Any])
        #expect(source["url"] as? String == url && source["bytes"] as? Int == gif.count)
        #expect((source["sha256"] as? String)?.count == 64)
        #expect(source["width"] as? Int == 33 && source["height"] as? Int == 21 && source["frames"] as? Int == 6)
        #expect(source["delays"] as? [Double] == Array(repeating: 0.07, count: 6) && source["duration"] as? Double == 0.42)
        #expect(source["loop_count"] as? Int == 0)
        #expect(source["animated"] as? Bool == true && source["transparent"] as? Bool == false)
        let renditions = try #require(try json(before)["renditions"] as? [String: [String: Any]])
        #expect(renditions["mp4"]?.count == 1 && renditions["mp4"]?["url"] as? String == "/mp4/\(url)")
        #expect(renditions["webp"]?["url"] as? String == "/webp/\(url)")

        let video = try server.request("GET", "/mp4/\(url)")
        let poster = try server.request("GET", "/jpg/\(url)")
        let after = try server.request("GET", "/json/\(url)")
        #expect(after["cache-status"] == "gifreel; hit" && after["etag"] != before["etag"])
        let made = try #require(try json(after)["renditions"] as? [String: [String: Any]])
        #expect(
            try #require(made["mp4"]?["type"] as? String).wholeMatch(
                of: try Regex("video/mp4; codecs=\"avc1\\.6400[0-9a-f]{2}\"")) != nil)
        #expect(made["jpg"]?["type"] as? String == "image/jpeg" && made["png"]?["type"] == nil)
        #expect(made["mp4"]?["bytes"] as? Int == video.body.count && made["mp4"]?["duration"] as? Double == 0.42)
        #expect(made["mp4"]?["width"] as? Int == 34 && made["mp4"]?["height"] as? Int == 22)
        #expect(made["jpg"]?["bytes"] as? Int == poster.body.count && made["jpg"]?["width"] as? Int == 33)
        #expect(made["jpg"]?["duration"] == nil && made["png"]?.count == 1)
        let tag = try #require(after["etag"])
        #expect(try server.request("GET", "/json/\(url)", headers: ["If-None-Match: \(tag)"]).status == 304)
        #expect(try server.request("HEAD", "/json/\(url)")["content-length"] == "\(after.body.count)")
    }

    @Test func factsOfAnUploadHaveAnAddressAndNoneWhereThereIsNone() throws {
        var builder = GIFBuilder(width: 8, height: 8)
        builder.add(GIFBuilder.Frame(width: 4, height: 8, color: 2)) { $0.delay = 0 }
        let gif = builder.finish()
        let server = try GifreelProcess()
        let answer = try server.request("POST", "/json", body: gif)
        let text = String(decoding: answer.body, as: UTF8.self)
        // «Once» and «nowhere» are null, not left out.
        #expect(text.contains("\"loop_count\":null") && text.contains("\"url\":null") && text.contains("\"delays\":[0.1]"))
        #expect(
            text.contains("\"animated\":false") && text.contains("\"transparent\":true") && text.contains("\"renditions\":{}"))
        let stored = try server.request("GET", try #require(answer["content-location"]))
        #expect(stored.body == answer.body && stored["content-type"] == "application/json")
        let video = try server.request("POST", "/mp4", body: gif)
        let later = try json(try server.request("POST", "/json", body: gif))
        let made = try #require((later["renditions"] as? [String: [String: Any]])?["mp4"])
        #expect(made["url"] as? String == video["content-location"])
    }

    @Test func aBrokenGIFHasNoFacts() throws {
        let server = try GifreelProcess()
        let answer = try server.request("POST", "/json", body: Array(gif.prefix(60)))
        #expect(answer.status == 422)
        #expect(try json(answer)["code"] as? String == "corrupt_gif")
    }

    @Test func aPurgeForgetsEveryFormat() throws {
        let origin = try LoopbackOrigin(["/a.gif": { _ in .ok(gif) }])
        defer { origin.stop() }
        let server = try GifreelProcess(["admin.token=secret"])
        let targets = ["mp4", "mp4,width=20", "jpg", "png,frame=3", "webp", "json"].map { "/\($0)/\(origin.url("/a.gif"))" }
        for target in targets { #expect(try server.request("GET", target).status == 200) }
        let purged = try server.request("PURGE", targets[3], headers: ["Authorization: Bearer secret"])
        #expect(try json(purged)["purged"] as? Int == targets.count)
        for target in targets {
            #expect(try server.request("GET", target)["cache-status"] == "gifreel; fwd=miss; stored", "\(target)")
        }
    }
}
