internal import Digests
internal import Fetch
internal import HTTPClient
package import Renditions
internal import SystemIO

/// Loads the lists of a run and removes duplicate renditions.
package struct ListLoader {
    private let format: PrewarmList.Format?
    private let base: String?
    private let formats: [String]
    private let options: [String: String]
    private let defaults: RenditionDefaults?

    /// - Parameters:
    ///   - format: The syntax of the lists; nil guesses it for each.
    ///   - base: The URL of HTML pages, which resolves relative links.
    ///   - formats: Formats for entries without their own; each adds an entry.
    ///   - options: Options for entries without their own.
    ///   - defaults: The defaults for options that entries omit; nil if they are unknown.
    package init(
        format: PrewarmList.Format?, base: String?, formats: [String], options: [String: String],
        defaults: RenditionDefaults? = RenditionDefaults()
    ) {
        self.format = format
        self.base = base
        self.formats = formats
        self.options = options
        self.defaults = defaults
    }

    /// The most sitemaps that an index may lead to. The protocol of sitemaps.org allows 50,000.
    private static let sitemapLimit = 1000

    /// Reads the files and downloads the sitemaps that they name. Blocks.
    ///
    /// - Parameters:
    ///   - files: Paths; `-` is standard input.
    ///   - skip: Receives the error of each sitemap of an index that cannot be read.
    package func read(
        _ files: [String], skipping skip: (PrewarmRunError) -> Void = { _ in }
    ) throws(PrewarmRunError) -> [PrewarmEntry] {
        var entries: [PrewarmEntry] = []
        var sitemaps: [String] = []
        for file in files {
            let bytes = try translating(try Files.read(file)) { (error: FileError) in PrewarmRunError("The list \(error)") }
            let list = try parse(bytes, name: file)
            entries += list.flatMap(\.entries)
            sitemaps += list.first?.sitemaps ?? []
        }
        var known = Set(sitemaps)
        var next = 0
        while next < sitemaps.count {
            guard sitemaps.count <= Self.sitemapLimit else {
                throw PrewarmRunError("The index names more than \(Self.sitemapLimit) sitemaps.")
            }
            do throws(PrewarmRunError) {
                let list = try parse(try download(sitemaps[next]), name: sitemaps[next])
                entries += list.flatMap(\.entries)
                sitemaps += (list.first?.sitemaps ?? []).filter { known.insert($0).inserted }
            } catch {
                skip(error)
            }
            next += 1
        }
        var seen = Set<String>()
        return entries.filter { seen.insert($0.identity(defaults)).inserted }
    }

    /// A hash of the renditions and the target, which names the journal of a run.
    package static func fingerprint(
        of entries: [PrewarmEntry], target: String, defaults: RenditionDefaults? = RenditionDefaults()
    ) -> String {
        var hash = SHA256()
        hash.update(Array((target + "\n").utf8))
        for entry in entries { hash.update(Array((entry.identity(defaults) + "\n").utf8)) }
        return Hex.encode(hash.finalize().prefix(8))
    }

    /// The size limit of a decompressed list, in bytes. A sitemap may have 50 MB (sitemaps.org).
    private static let decompressedLimit = 256 << 20

    /// Decompresses a list, and parses it once per format.
    private func parse(_ bytes: [UInt8], name: String) throws(PrewarmRunError) -> [PrewarmList] {
        do throws(PrewarmList.Malformed) {
            let text = GzipReader.isGzip(bytes) ? try GzipReader.decompress(bytes, limit: Self.decompressedLimit) : bytes
            var lists: [PrewarmList] = []
            for format in formats {
                let template = PrewarmEntry(url: "", format: format, options: options)
                lists.append(try PrewarmList(text, format: self.format, base: base, template: template))
            }
            return lists
        } catch {
            throw PrewarmRunError("\(name): \(error)")
        }
    }

    private func download(_ url: String) throws(PrewarmRunError) -> [UInt8] {
        // A list must not address the sockets of this machine.
        guard ServerClient.socketPath(url) == nil else {
            throw PrewarmRunError("The sitemap \(url) cannot be read: its address is not a URL.")
        }
        let client = ServerClient(server: url, token: nil)
        let answer = try translating(try client.send("GET", "", followsRedirects: true)) { (error: HTTPError) in
            PrewarmRunError("The sitemap \(url) cannot be read: \(error).")
        }
        guard answer.status == 200 else {
            throw PrewarmRunError("The sitemap \(url) cannot be read: its server answers with status \(answer.status).")
        }
        return answer.body
    }
}

/// Decompresses lists in gzip (RFC 1952), such as sitemaps. The members of a file are joined (section 2.2).
enum GzipReader {
    static func isGzip(_ bytes: [UInt8]) -> Bool {
        bytes.starts(with: [0x1F, 0x8B])
    }

    /// Decompresses the bytes.
    ///
    /// - Parameter limit: The size limit of the result, in bytes.
    /// - Throws: ``PrewarmList/Malformed`` for data that cannot be decompressed.
    static func decompress(_ bytes: [UInt8], limit: Int) throws(PrewarmList.Malformed) -> [UInt8] {
        let decoder = ContentDecoder(["gzip"], limit: limit)
        var result: [UInt8] = []
        decoder?.add(bytes)
        do throws(FetchError) {
            while try decoder?.step({ result += $0 }) == true {}
        } catch .tooLarge {
            throw PrewarmList.Malformed("The list has more than \(limit >> 20) MiB when it is decompressed.")
        } catch {
            throw PrewarmList.Malformed("The list is damaged: its gzip data cannot be decompressed.")
        }
        guard decoder?.isComplete == true else {
            throw PrewarmList.Malformed("The list is incomplete: its gzip data ends early.")
        }
        return result
    }
}
