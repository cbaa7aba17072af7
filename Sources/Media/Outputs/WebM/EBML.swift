/// The elements of WebM files that are written and read here (RFC 8794; RFC 9559; WebM container guidelines).
///
/// The raw value is the identifier as coded, with its length marker.
enum EBMLElement: UInt32 {
    case header = 0x1a45_dfa3
    case version = 0x4286
    case readVersion = 0x42f7
    case maxIDLength = 0x42f2
    case maxSizeLength = 0x42f3
    case docType = 0x4282
    case docTypeVersion = 0x4287
    case docTypeReadVersion = 0x4285

    case segment = 0x1853_8067
    case seekHead = 0x114d_9b74
    case seek = 0x4dbb
    case seekID = 0x53ab
    case seekPosition = 0x53ac

    case info = 0x1549_a966
    case timestampScale = 0x2ad7b1
    case duration = 0x4489
    case muxingApp = 0x4d80
    case writingApp = 0x5741

    case tracks = 0x1654_ae6b
    case trackEntry = 0xae
    case trackNumber = 0xd7
    case trackUID = 0x73c5
    case trackType = 0x83
    case flagLacing = 0x9c
    case defaultDuration = 0x23e383
    case maxBlockAdditionID = 0x55ee
    case language = 0x22b59c
    case codecID = 0x86
    case video = 0xe0
    case pixelWidth = 0xb0
    case pixelHeight = 0xba
    case alphaMode = 0x53c0
    case colour = 0x55b0
    case matrixCoefficients = 0x55b1
    case bitsPerChannel = 0x55b2
    case chromaSubsamplingHorizontal = 0x55b3
    case chromaSubsamplingVertical = 0x55b4
    case chromaSitingHorizontal = 0x55b7
    case chromaSitingVertical = 0x55b8
    case range = 0x55b9
    case transferCharacteristics = 0x55ba
    case primaries = 0x55bb

    case cues = 0x1c53_bb6b
    case cuePoint = 0xbb
    case cueTime = 0xb3
    case cueTrackPositions = 0xb7
    case cueTrack = 0xf7
    case cueClusterPosition = 0xf1

    case cluster = 0x1f43_b675
    case timestamp = 0xe7
    case simpleBlock = 0xa3
    case blockGroup = 0xa0
    case block = 0xa1
    case blockDuration = 0x9b
    case referenceBlock = 0xfb
    case blockAdditions = 0x75a1
    case blockMore = 0xa6
    case blockAddID = 0xee
    case blockAdditional = 0xa5

    /// The identifier as coded.
    var bytes: [UInt8] { EBML.bigEndian(UInt64(rawValue)) }
}

/// Writes EBML (RFC 8794 §4…§7).
enum EBML {
    /// Returns the identifier and size in front of an element's contents.
    static func head(_ element: EBMLElement, size: Int) -> [UInt8] {
        element.bytes + variableSize(size)
    }

    /// Returns an element that contains bytes.
    static func element(_ element: EBMLElement, _ contents: [UInt8]) -> [UInt8] {
        head(element, size: contents.count) + contents
    }

    /// Returns an element that contains an unsigned number, in the fewest bytes.
    static func number(_ element: EBMLElement, _ value: Int) -> [UInt8] {
        self.element(element, bigEndian(UInt64(value)))
    }

    /// Returns an element that contains a signed number, in the fewest bytes.
    static func signed(_ element: EBMLElement, _ value: Int) -> [UInt8] {
        var bytes = (0..<8).map { UInt8(truncatingIfNeeded: value >> (56 - 8 * $0)) }
        while bytes.count > 1, (bytes[0] == 0 && bytes[1] < 0x80) || (bytes[0] == 0xff && bytes[1] >= 0x80) {
            bytes.removeFirst()
        }
        return self.element(element, bytes)
    }

    /// Returns an element that contains a 64-bit floating-point number.
    static func float(_ element: EBMLElement, _ value: Double) -> [UInt8] {
        self.element(element, (0..<8).map { UInt8(truncatingIfNeeded: value.bitPattern >> UInt64(56 - 8 * $0)) })
    }

    static func text(_ element: EBMLElement, _ value: String) -> [UInt8] {
        self.element(element, Array(value.utf8))
    }

    /// Returns a number in the fewest bytes, at least one, most significant first.
    static func bigEndian(_ value: UInt64) -> [UInt8] {
        let count = max(1, (71 - value.leadingZeroBitCount) / 8)
        return (0..<count).map { UInt8(truncatingIfNeeded: value >> UInt64(8 * (count - 1 - $0))) }
    }

    /// Returns a size with its length marker (§4.4, §6.1), in the fewest bytes. All ones would mean an unknown size.
    private static func variableSize(_ size: Int) -> [UInt8] {
        var length = 1
        while length < 8, size >= 1 << (7 * length) - 1 { length += 1 }
        let coded = UInt64(size) | 1 << UInt64(7 * length)
        return (0..<length).map { UInt8(truncatingIfNeeded: coded >> UInt64(8 * (length - 1 - $0))) }
    }
}
