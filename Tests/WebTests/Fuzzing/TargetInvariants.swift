#if !FUZZ
    import Fetch
    import Renditions

    @testable import Web
#endif

/// What must hold of what is read out of request targets, whatever they are.
///
/// The fuzzer looks for bytes for which it does not. It is compiled into the fuzzer together with the parsers themselves.
enum TargetInvariants {
    private static let parser: RouteParser? = {
        guard let origin = try? SourceURL("https://media.example.com/up/") else { return nil }
        var mount = Mount(origin: origin, allow: ["open/", "more*"])
        mount.negotiates = true
        return RouteParser(mounts: ["media": mount])
    }()

    /// The first invariant that does not hold, in words; nil where all do.
    static func violation(_ bytes: UnsafeRawBufferPointer) -> String? {
        guard let parser else { return "no parser" }
        let target = String(decoding: bytes, as: UTF8.self)
        do throws(Problem) {
            let asked = try parser.parse(target)
            guard case .rendition(let rendition, let url) = asked.route else { return nil }
            if asked.mount != nil, let violation = mounted(url) { return violation }
            return canonical(rendition, url, parser) ?? forms(rendition, url, parser) ?? signed(asked, rendition, url)
        } catch {
            guard (400..<500).contains(error.status), !error.detail.isEmpty else { return "problem \(error.status)" }
            return nil
        }
    }

    /// Nothing is reached through a mount but what is open of it.
    private static func mounted(_ url: SourceURL) -> String? {
        let isOpen = ["https://media.example.com/up/open/", "https://media.example.com/up/more"].contains(
            where: url.canonical.hasPrefix)
        return isOpen && url.path.lowercased().hasSuffix(".gif") ? nil : "through the mount: \(url)"
    }

    /// Making a target of what was read, and reading that, gives the same.
    private static func canonical(_ rendition: Rendition, _ url: SourceURL, _ parser: RouteParser) -> String? {
        read("/\(rendition.canonicalText)/\(url.canonical)", parser, rendition, url)
    }

    /// The options in another order and in the query, and the source percent-encoded, mean the same.
    private static func forms(_ rendition: Rendition, _ url: SourceURL, _ parser: RouteParser) -> String? {
        let encoded = url.canonical.utf8.map { byte in
            let digits = String(byte, radix: 16)
            return "%" + (digits.utf8.count < 2 ? "0" : "") + digits
        }.joined()
        let options = rendition.canonicalOptions.reversed().map { "&\($0.name)=\($0.value)" }.joined()
        return read("/\(rendition.format.rawValue)?url=\(encoded)\(options)", parser, rendition, url)
            ?? read("/\(rendition.format.rawValue)/\(encoded)?\(options.dropFirst())", parser, rendition, url)
    }

    private static func read(_ target: String, _ parser: RouteParser, _ rendition: Rendition, _ url: SourceURL) -> String? {
        do throws(Problem) {
            guard case .rendition(let again, let source) = try parser.parse(target).route else {
                return "\(target) is no rendition"
            }
            guard again == rendition, again.canonicalText == rendition.canonicalText, source == url else {
                return "\(target) is \(again.canonicalText) of \(source)"
            }
            return nil
        } catch {
            // What fitted in one form of a target may be too long in another, for URLs have a longest.
            return url.canonical.utf8.count > SourceURL.maxLength / 4 ? nil : "\(target): \(error.detail)"
        }
    }

    /// A signed text has its three lines, and says of its options what was read.
    private static func signed(_ asked: ParsedTarget, _ rendition: Rendition, _ url: SourceURL) -> String? {
        guard let credentials = asked.credentials else { return "nothing to sign" }
        for text in credentials.texts(canonicalSource: url.canonical) {
            let lines = text.text.split(separator: "\n", omittingEmptySubsequences: false)
            guard lines.count == 3, lines[0] == rendition.format.rawValue else { return "signed text \(text.text)" }
            do throws(Problem) {
                var reader = OptionReader(format: rendition.format)
                for pair in lines[1].split(separator: ",") { try reader.readPair(pair) }
                guard try reader.finish() == rendition else { return "signed options \(lines[1])" }
            } catch {
                return "signed options \(lines[1]): \(error.detail)"
            }
            guard let source = try? SourceURL(String(lines[2])), source == url else { return "signed source \(lines[2])" }
        }
        return nil
    }
}

/// Where the fuzzer of targets begins.
enum TargetSeeds {
    static let all: [[UInt8]] = [
        "/mp4/https://example.com/a.gif?v=2", "/mp4,quality=80,bg=00ff00/https:/example.com/a.gif",
        "/jpg,width=40,height=30,fit=cover/http%3A%2F%2Fexample.com%2Fa.gif?frame=3",
        "/mp4?url=http%3A%2F%2Fa.test&speed=0.125&fps=30",
        "/webp?quality=1&url=http://a.test/", "/png,frame=0/http://a.test/", "/json/http://a.test/",
        "/html,loops=3/http://a.test/",
        "/mp4,start=0.01,end=5,speed=9.9999/http://a.test/", "/mp4,expires=2000000000,sig=abc/http://a.test/",
        "/media/open/x/y.mp4?width=80", "/media/more.gif", "/media/open/%2e%2e/secret.jpg?sig=x&expires=1",
        "/media/open/..%2fx.mp4", "/media/open/list.txt#x.mp4", "/media/open/x?\u{64f}y.mp4",
        "/object/0000000000000000000000000000000000000000000000000000000000000000.mp4", "/cache?url=%zz", "/healthz",
        "/mp4,a=b=c/",
        "/mp4,quality=%38%30/HTTP://A.test:80/%41", "/mp4/http://a.test/?url=b&quality=3",
    ].map { Array($0.utf8) }
}
