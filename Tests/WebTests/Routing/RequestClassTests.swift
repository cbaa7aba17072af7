import Renditions
import Store
import SystemIO
import Testing

@testable import Web

@Suite("Requests are classified by their route, status and use of the cache") struct RequestClassTests {
    @Test(
        arguments: [
            ("gifreel; hit", .hit), ("gifreel; hit; detail=negative", .hit), ("gifreel; hit; ttl=-5", .stale),
            ("gifreel; fwd=miss; stored", .miss), ("gifreel; fwd=miss; detail=original", .miss),
            ("gifreel; fwd=miss; collapsed", .collapsed), ("gifreel; fwd=miss; collapsed; detail=shared", .collapsed),
            ("gifreel; fwd=miss; stored; detail=shared", .miss), ("gifreel; fwd=stale; fwd-status=304; stored", .miss),
            ("gifreel; fwd=miss; detail=disk-full", .miss), ("gifreel; hit; detail=incomplete-source", .hit), ("", .none),
            ("gifreel", .none),
        ] as [(String, RequestClass.CacheUse)])
    func theCacheStatusNamesTheUseOfTheCache(_ field: String, _ use: RequestClass.CacheUse) {
        #expect(RequestClass.CacheUse(field) == use)
    }

    @Test(
        arguments: [
            .hit, .stale(5), .renewed, .stored, .unstored(.unwanted), .collapsed, .shared, .followed,
        ] as [RenditionResult.Provenance])
    func everyProvenanceIsCounted(_ provenance: RenditionResult.Provenance) {
        let use = RequestClass.CacheUse(CacheStatusField.value(provenance))
        switch provenance {
        case .hit: #expect(use == .hit)
        case .stale: #expect(use == .stale)
        case .collapsed, .followed: #expect(use == .collapsed)
        case .renewed, .stored, .unstored, .shared: #expect(use == .miss)
        }
    }

    @Test(
        arguments: [
            .unwanted, .purged, .tooLarge, .diskFull, .lowSpace, .readOnly, .directoryLost, .unavailable,
            .failed(SystemError("test", code: 5)),
        ] as [UnstoredReason])
    func everyReasonIsATokenOfItsOwn(_ reason: UnstoredReason) {
        let isToken = reason.token.utf8.allSatisfy { (0x61...0x7a).contains($0) || $0 == UInt8(ascii: "-") }
        #expect(isToken && RequestClass.CacheUse("gifreel; fwd=miss; detail=\(reason.token)") == .miss)
    }

    @Test func aRouteIsTheFirstSegmentOfATarget() {
        var names = RouteNames(mounts: ["media", "a-mount-with-a-name-that-is-too-long-for-a-word"])
        for (target, name) in [
            ("/", "home"), ("/?x", "home"), ("/mp4/https://a/b.gif", "mp4"), ("/mp4,width=2/x", "mp4"), ("/mp4?url=x", "mp4"),
            ("/json/x", "json"), ("/object/x.mp4", "object"), ("/media/a.gif", "mount"), ("/media", "mount"),
            ("/mediax/a.gif", "other"), ("/MP4/x", "other"), ("/metrics", "metrics"),
            ("/0123456789abcdef/x", "other"), ("/0123456789abcdefg/x", "other"), ("", "other"),
            ("/a-mount-with-a-name-that-is-too-long-for-a-word/x.gif", "other"),
        ] {
            // Twice, because the latest segment is remembered.
            for _ in 0..<2 {
                let index = Array(target.utf8).withUnsafeBytes { names.index(of: $0) }
                #expect(names.names[index] == name, "\(target)")
            }
        }
    }
}
