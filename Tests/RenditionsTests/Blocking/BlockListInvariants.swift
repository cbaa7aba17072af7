#if !FUZZ
    import Media

    @testable import Renditions
#endif

/// What must hold of a block list, whatever the bytes of its file. The fuzzer looks for bytes for which it does not hold.
enum BlockListInvariants {
    /// The first invariant that does not hold, in words; nil if all do.
    static func violation(_ bytes: UnsafeRawBufferPointer) -> String? {
        let lines = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        do throws(BlockList.Invalid) {
            let list = try BlockList(bytes)
            guard list.count <= lines.count else { return "\(list.count) entries in \(lines.count) lines" }
            for line in lines where line.starts(with: "pdq:".utf8) {
                guard let hash = PDQHash(text: line.dropFirst(4).prefix(PDQHash.digits)) else { return "a hash that is none" }
                guard let label = list.label(of: [hash]), BlockList.isLabel(label) else { return "an entry that is not found" }
            }
            return nil
        } catch {
            switch error {
            case .line(let number, _): return (1...lines.count).contains(number) ? nil : "line \(number) of \(lines.count)"
            case .tooLong: return lines.count > BlockList.maxEntries ? nil : "too long with \(lines.count) lines"
            }
        }
    }
}

/// Files with which the fuzzer begins.
enum BlockListSeeds {
    private static let hash = String(repeating: "0123456789abcdef", count: 4)

    static let all: [[UInt8]] = [
        "", "# a comment\n\n", "pdq:\(hash) case 17\n", "sha256:\(hash)\tcase 18\r\n# end", "pdq:\(hash)\nsha256:12 x\n",
        "  pdq:\(hash) a\nsha256:\(hash.uppercased()) é \n\n\nmd5:\(hash) x",
    ].map { Array($0.utf8) }
}
