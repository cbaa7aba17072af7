import Fetch
import Foundation
import Renditions
import TestSupport
import Testing

@testable import Web

@Suite("The server has what gifreel.js requests", .enabled(if: ScriptHost.node != nil)) struct PageScriptTests {
    private static let origin = "https://site.test/"

    /// The rendition and the source that an address names.
    private func parse(_ address: String, _ mounts: [String: Mount] = [:]) throws -> (rendition: Rendition, source: String) {
        let target = address.replacing(ScriptHost.server, with: "/")
        let route = try RouteParser(mounts: mounts).parse(target).route
        guard case .rendition(let rendition, let source) = route else { throw Problem.notFound(address) }
        return (rendition, source.canonical)
    }

    /// A value of an option, with the options without which it has no effect.
    private func text(_ option: RenditionOption) -> String {
        let value: String
        switch option.domain(of: .mp4) {
        case .whole(let range): value = "\(range.upperBound)"
        case .decimal(let range): value = "\(Int(range.upperBound))"
        case .words(let words): value = words.last ?? ""
        case .wholeOr(_, let word): value = word
        case .wordsOrPoint(let words): value = words.last ?? ""
        case .colour: value = "000000"
        }
        let others =
            switch option {
            case .fit: ",height=20,width=20"
            case .gravity: ",fit=cover,height=20,width=20"
            default: ""
            }
        return "\(option.rawValue)=\(value)" + others
    }

    @Test func eachOptionIsSentWhereItHasAnEffect() throws {
        let options = RenditionOption.allCases.filter { $0.applies(to: .mp4) || $0.applies(to: .jpg) }
        #expect(options.contains(.tune) && options.contains(.codec) && options.contains(.frame))
        let pages = options.map { ScriptHost.Page(settings: ["options": text($0)], width: "150") }
        for (option, addresses) in zip(options, try ScriptHost.addresses(pages)) {
            #expect(addresses.count == 2)
            for (address, format) in zip(addresses, [Rendition.Format.jpg, .mp4]) {
                let (rendition, source) = try parse(address)
                #expect(rendition.format == format && source == "https://site.test/a.gif", "\(address)")
                #expect(address.contains("\(option.rawValue)=") == option.applies(to: format), "\(address)")
            }
        }
    }

    @Test(arguments: [
        ("", "jpg,width=160", "mp4,width=160"), ("quality=50", "jpg,quality=50,width=160", "mp4,quality=50,width=160"),
        ("width=320", "jpg,width=320", "mp4,width=320"), ("height=90", "jpg,height=90", "mp4,height=90"),
        ("tune=screen,zoom=2", "jpg,zoom=2", "mp4,tune=screen,zoom=2"),
        ("frame=3,speed=2", "jpg,frame=3,width=160", "mp4,speed=2,width=160"),
    ]) func theWidthIsThatOfTheImageUnlessTheOptionsHaveASize(_ options: String, _ poster: String, _ video: String) throws {
        let settings = ["options": options]
        let mounted = settings.merging(["mount": "media"]) { $1 }
        let pages = [settings, mounted].map { ScriptHost.Page(settings: $0, width: "150") }
        let mounts = ["media": Mount(origin: try SourceURL(Self.origin))]
        for addresses in try ScriptHost.addresses(pages) {
            #expect(try addresses.map { try parse($0, mounts).rendition.canonicalText } == [poster, video], "\(addresses)")
        }
    }

    @Test func theAV1HasOneCodec() throws {
        let page = ScriptHost.Page(settings: ["options": "codec=h264,frame=1", "av1": ""], width: nil)
        let names = ["jpg,frame=1", "mp4,codec=av1,on_miss=queue,on_larger=problem", "mp4,on_larger=problem,codec=h264"]
        let expected = names.map { "\(ScriptHost.server)\($0)/\(Self.origin)a.gif" }
        #expect(try ScriptHost.addresses([page]) == [expected])
    }
}

/// Runs gifreel.js in Node.js, with objects in place of those of a browser.
enum ScriptHost {
    /// A page with one GIF, which has not arrived.
    struct Page: Encodable {
        /// The attributes `data-…` of the script's tag.
        let settings: [String: String]
        /// The attribute `width` of the image.
        let width: String?
    }

    /// The address of the server of the script.
    static let server = "https://gifs.test/"

    /// The program; nil if it is not installed. scripts/setup installs it.
    static let node: URL? = {
        let path = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin"
        return path.split(separator: ":").map { URL(fileURLWithPath: "\($0)/node") }
            .first { FileManager.default.isExecutableFile(atPath: $0.path) }
    }()

    /// The addresses that each page requests: the poster, then the sources of the video in their order.
    static func addresses(_ pages: [Page]) throws -> [[String]] {
        let input = [UInt8](try JSONEncoder().encode(pages))
        let script = String(decoding: SiteFile.script.bytes, as: UTF8.self)
        let outcome = try ChildProcess(try #require(node), ["-e", host, script], input: input).finish()
        #expect(outcome.code == 0, "\(outcome.log)")
        return try JSONDecoder().decode([[String]].self, from: Data(outcome.bytes))
    }

    private static let host = """
        const { readFileSync } = require("fs");
        const script = process.argv[1];
        const ignore = () => {};
        class IntersectionObserver {
          constructor(report) { this.report = report; }
          observe(target) { this.report([{ target, isIntersecting: true }]); }
          unobserve() {}
          disconnect() {}
        }
        class MutationObserver {
          observe() {}
        }
        function addresses({ settings, width }) {
          const img = {
            nodeType: 1, tagName: "IMG", src: "https://site.test/a.gif", srcset: "", alt: "", dataset: {}, attributes: [],
            clientWidth: Number(width), complete: false, matches: () => true, closest: () => null, hasAttribute: () => false,
            getAttribute: (name) => (name === "width" && width ? width : null), addEventListener: ignore, removeAttribute: ignore,
          };
          const sources = [];
          const video = {
            addEventListener: ignore, setAttribute: ignore, play: async () => {}, append: (source) => sources.push(source.src),
            lastChild: { addEventListener: ignore },
          };
          const document = {
            currentScript: { src: "\(server)gifreel.js", dataset: settings }, baseURI: "https://site.test/post",
            documentElement: { nodeType: 1, tagName: "HTML", querySelectorAll: () => [img] },
            createElement: (name) => (name === "video" ? video : {}),
          };
          const names = [
            "document", "navigator", "matchMedia", "devicePixelRatio", "IntersectionObserver", "MutationObserver", "setTimeout",
          ];
          const values = [document, {}, () => ({ matches: false }), 1, IntersectionObserver, MutationObserver, ignore];
          new Function(...names, script)(...values);
          return [img.src, ...sources];
        }
        console.log(JSON.stringify(JSON.parse(readFileSync(0, "utf8")).map(addresses)));
        """
}
