/// A part of a response that remains to be sent.
enum Segment {
    case bytes([UInt8], Range<Int>)
    case file(ServedFile, Range<Int>)

    init(_ bytes: [UInt8]) {
        self = .bytes(bytes, 0..<bytes.count)
    }

    init(_ content: HTTPResource.Content, _ range: Range<Int>) {
        self =
            switch content {
            case .file(let file): .file(file, range)
            case .bytes(let bytes): .bytes(bytes, range)
            }
    }

    var isInMemory: Bool {
        switch self {
        case .bytes: true
        case .file: false
        }
    }

    /// The number of bytes left to send.
    var count: Int {
        switch self {
        case .bytes(_, let range), .file(_, let range): range.count
        }
    }

    func dropping(_ count: Int) -> Segment {
        switch self {
        case .bytes(let bytes, let range): .bytes(bytes, range.lowerBound + count..<range.upperBound)
        case .file(let file, let range): .file(file, range.lowerBound + count..<range.upperBound)
        }
    }
}

/// The body of a multi-range 206 (RFC 9110 section 14.6): parts with a head each, separated by boundaries.
struct MultipartRanges {
    /// The `Content-Type` field with its CRLF.
    let contentType: [UInt8]
    /// The length of the body in bytes.
    let length: Int
    /// The parts of the body; never empty.
    let segments: [Segment]

    init(_ resource: HTTPResource, _ ranges: [Range<Int>], boundary: String) {
        contentType = Array("Content-Type: multipart/byteranges; boundary=\(boundary)\r\n".utf8)
        let type = String(decoding: resource.contentType, as: UTF8.self)
        var segments: [Segment] = []
        for (index, range) in ranges.enumerated() {
            let opening = index == 0 ? "--\(boundary)" : "\r\n--\(boundary)"
            let contentRange = "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(resource.length)"
            let head = "\(opening)\r\nContent-Type: \(type)\r\nContent-Range: \(contentRange)\r\n\r\n"
            segments.append(Segment(Array(head.utf8)))
            segments.append(Segment(resource.content, range))
        }
        segments.append(Segment(Array("\r\n--\(boundary)--\r\n".utf8)))
        self.segments = segments
        length = segments.reduce(0) { $0 + $1.count }
    }
}
