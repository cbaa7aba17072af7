/// The properties of a track that libavformat does not expose (ISO/IEC 14496-12 §8, ISO/IEC 23008-12 §7).
struct ISOTrack {
    /// The track ID, which is the stream's `id` in libavformat.
    let number: UInt32
    let isEnabled: Bool
    /// Whether its pictures are not for display: alpha, depth and others.
    let isAuxiliary: Bool
    /// The tracks to which these auxiliary pictures belong.
    let auxiliaryOf: [UInt32]
    /// The alpha tracks by which the colours are premultiplied.
    let premultipliedBy: [UInt32]
    /// The type of each sample description.
    let descriptions: [String]
    /// The type of the auxiliary pictures; nil if it is not stated.
    let auxiliaryType: String?
    /// The number of anticlockwise quarter turns.
    let turns: UInt8
    /// The axis of mirroring: 0 swaps top and bottom, 1 left and right; nil without mirroring.
    let mirror: UInt8?
    /// The sum of the durations of all samples, in units of the track; 0 if the file has fragments.
    let length: Int64
    /// Whether all samples are in fragments.
    private let isInFragments: Bool
    /// The eight numbers of the clean aperture (ISO/IEC 14496-12 §12.1.4).
    private let aperture: [UInt32]
    let edits: EditList?
    /// Whether it is a video without fragments whose edits have no duration. This means the whole track only in a movie with
    /// fragments (ISO/IEC 14496-12 §8.6.6), but players show such a video, too.
    let hasEditsWithoutDuration: Bool

    /// An edit list (ISO/IEC 14496-12 §8.6.6).
    struct EditList {
        /// The total duration of the edits that show the track, in units of the movie.
        let shown: Int64
        /// Units of the movie per second.
        let timescale: Int64
        /// Whether the list begins with an empty edit.
        let beginsEmpty: Bool
        /// How often the first edit is shown: 1 unless it repeats until the track ends (flag 1); nil for endless.
        let plays: UInt64?
        /// The edits up to the last that shows something. Empty unless libavformat shows them wrongly: it repeats pictures in an empty
        /// edit behind another, and with reordered pictures, it begins a second edit late.
        let parts: [Part]
    }

    /// An edit, in units of the track.
    struct Part {
        /// The time of the media at which it begins; nil if it shows nothing.
        let start: Int64?
        let length: Int64
    }

    /// Whether some samples are encrypted (ISO/IEC 23001-7 §4.1).
    var isEncrypted: Bool { descriptions.contains("encv") }

    /// The repetitions after the first play of an image sequence: nil for none, 0 for endless. Browsers repeat a sequence
    /// without an edit list endlessly, and one with more than 2³¹ plays.
    var loopCount: Int? {
        guard let edits, let plays = edits.plays, plays <= 1 << 31 else { return 0 }
        return plays <= 1 ? nil : Int(min(plays - 1, UInt64(FactRange.loopCount.upperBound)))
    }

    /// Returns all tracks of a file, in order.
    static func all(in bytes: UnsafeRawBufferPointer) -> [ISOTrack] {
        guard let movie = ISOBoxes.first("moov", in: bytes) else { return [] }
        let header = ISOBoxes.first("mvhd", in: movie)
        let timescale = header.map { ISOBoxes.number($0, $0.first == 1 ? 20 : 12) } ?? 0
        let hasFragments = ISOBoxes.first("mvex", in: movie) != nil
        var tracks: [ISOTrack] = []
        ISOBoxes.forEach(in: movie) { box in
            if box.type == "trak" { tracks.append(ISOTrack(box.body, movie: Int64(timescale), hasFragments: hasFragments)) }
            return tracks.count < ClipContainer.maximumTracks
        }
        return tracks
    }

    private init(_ body: UnsafeRawBufferPointer, movie: Int64, hasFragments: Bool) {
        let header = ISOBoxes.first("tkhd", in: body) ?? UnsafeRawBufferPointer(start: nil, count: 0)
        let isWide = header.first == 1
        number = ISOBoxes.number(header, isWide ? 20 : 12)
        isEnabled = ISOBoxes.number(header, 0) & 1 == 1
        let duration = isWide ? ISOBoxes.wide(header, 28) : UInt64(ISOBoxes.number(header, 20))
        let isEndless = duration == (isWide ? UInt64.max : UInt64(UInt32.max))
        let references = ISOBoxes.first("tref", in: body)
        func referenced(_ type: String) -> [UInt32] {
            guard let list = references.flatMap({ ISOBoxes.first(type, in: $0) }) else { return [] }
            return stride(from: 0, to: min(list.count, 256) & ~3, by: 4).map { ISOBoxes.number(list, $0) }
        }
        auxiliaryOf = referenced("auxl")
        premultipliedBy = referenced("prem")
        let handler = ISOBoxes.first(path: "mdia.hdlr", in: body).map { ISOBoxes.text($0, 8) }
        isAuxiliary = handler == "auxv" || !auxiliaryOf.isEmpty || !referenced("vdep").isEmpty || !referenced("vplx").isEmpty
        let table = ISOBoxes.first(path: "mdia.minf.stbl", in: body)
        let description = Self.description(table.flatMap { ISOBoxes.first("stsd", in: $0) })
        (descriptions, auxiliaryType) = (description.types, description.auxiliaryType)
        (turns, mirror, aperture) = (description.turns, description.mirror, description.aperture)
        let ofTable = Self.length(table.flatMap { ISOBoxes.first("stts", in: $0) })
        length = hasFragments ? 0 : ofTable
        isInFragments = hasFragments && ofTable == 0
        edits = ISOBoxes.first(path: "edts.elst", in: body).flatMap {
            let offsets = table.flatMap { ISOBoxes.first("ctts", in: $0) }
            let isOther = hasFragments || handler != "vide" || Self.hasNegative(offsets)
            return Self.edits(
                $0, movie: movie, duration: isEndless ? nil : duration, media: isOther ? 0 : Self.timescale(of: body))
        }
        hasEditsWithoutDuration = !hasFragments && handler == "vide" && edits?.shown == 0
    }

    /// Returns the time at which the fragments begin, in units of the track; 0 if some samples are in no fragment.
    ///
    /// It is the origin of the duration that libavformat reports: a presentation time if an index of the fragments (§8.16.3)
    /// precedes them, or else a decoding time (§8.8.12).
    ///
    /// - Parameter timescale: Units of the track per second.
    /// - Returns: Nil if the index has another timescale, in which libavformat then reports the duration.
    func start(in bytes: UnsafeRawBufferPointer, timescale: CInt) -> Int64? {
        guard isInFragments else { return 0 }
        var found: Int64?
        var isForeign = false
        ISOBoxes.forEach(in: bytes) { box in
            if box.type == "sidx", ISOBoxes.number(box.body, 4) == number {
                found = Self.time(box.body, 12)
                isForeign = ISOBoxes.number(box.body, 8) != timescale
            }
            guard box.type == "moof" else { return found == nil }
            ISOBoxes.forEach(in: box.body) { part in
                guard part.type == "traf", let header = ISOBoxes.first("tfhd", in: part.body),
                    ISOBoxes.number(header, 4) == number
                else { return true }
                found = ISOBoxes.first("tfdt", in: part.body).map { Self.time($0, 4) } ?? 0
                return false
            }
            return found == nil
        }
        return isForeign ? nil : found ?? 0
    }

    /// Returns the time at a position, which has 64 bits in version 1 of a box.
    private static func time(_ box: UnsafeRawBufferPointer, _ at: Int) -> Int64 {
        box.first == 1 ? Int64(clamping: ISOBoxes.wide(box, at)) : Int64(ISOBoxes.number(box, at))
    }

    private struct Description {
        var types: [String] = []
        var auxiliaryType: String?
        var turns: UInt8 = 0
        var mirror: UInt8?
        var aperture: [UInt32] = []
    }

    /// Returns the types of the sample descriptions, and the properties in the first one.
    private static func description(
        _ list: UnsafeRawBufferPointer?
    ) -> Description {
        var found = Description()
        guard let list, list.count > 8 else { return found }
        ISOBoxes.forEach(in: UnsafeRawBufferPointer(rebasing: list[8...])) { entry in
            found.types.append(entry.type)
            // The fields of a VisualSampleEntry (§12.1.3).
            if found.types.count == 1, entry.body.count > 78 {
                ISOBoxes.forEach(in: UnsafeRawBufferPointer(rebasing: entry.body[78...])) { box in
                    switch box.type {
                    case "irot": found.turns = (box.body.first ?? 0) & 3
                    case "clap": found.aperture = (0..<8).map { ISOBoxes.number(box.body, 4 * $0) }
                    case "imir": found.mirror = (box.body.first ?? 0) & 1
                    case "auxi": found.auxiliaryType = String(decoding: box.body.dropFirst(4).prefix { $0 != 0 }, as: UTF8.self)
                    default: break
                    }
                    return true
                }
            }
            return found.types.count < 64
        }
        return found
    }

    /// Returns what the clean aperture cuts off an image of a size: at the right and below. As in Chromium, other apertures do not
    /// count, because they need the whole image in the same file (AV1 image file format §2.2.3).
    func margins(_ width: Int, _ height: Int) -> CropMargins {
        guard aperture.count == 8 else { return CropMargins() }
        func shown(_ at: Int, of side: Int) -> Int? {
            let (size, parts) = (Int(aperture[at]), Int(aperture[at + 1]))
            let (offset, offsetParts) = (Int(Int32(bitPattern: aperture[at + 4])), Int(aperture[at + 5]))
            guard parts > 0, offsetParts > 0, size % parts == 0, (1...side).contains(size / parts),
                2 * offset == (size / parts - side) * offsetParts
            else { return nil }
            return size / parts
        }
        guard let columns = shown(0, of: width), let rows = shown(2, of: height) else { return CropMargins() }
        return CropMargins(right: width - columns, bottom: height - rows)
    }

    /// Returns the sum of a table of durations (`stts`).
    private static func length(_ table: UnsafeRawBufferPointer?) -> Int64 {
        guard let table, table.count >= 8 else { return 0 }
        let entries = min(Int(ISOBoxes.number(table, 4)), (table.count - 8) / 8)
        var sum: Int64 = 0
        for index in 0..<entries {
            let count = Int64(ISOBoxes.number(table, 8 + 8 * index))
            // Some files have negative durations, which the standard forbids. Players read them.
            let delta = Int32(bitPattern: ISOBoxes.number(table, 12 + 8 * index))
            let (part, tooLarge) = count.multipliedReportingOverflow(by: Int64(delta))
            let (total, overflow) = sum.addingReportingOverflow(part)
            if tooLarge || overflow { return 0 }
            sum = total
        }
        return sum
    }

    /// Whether some composition offset is negative.
    private static func hasNegative(_ table: UnsafeRawBufferPointer?) -> Bool {
        guard let table, table.count >= 16 else { return false }
        return stride(from: 12, through: table.count - 4, by: 8).contains { ISOBoxes.number(table, $0) >> 31 == 1 }
    }

    private static func timescale(of track: UnsafeRawBufferPointer) -> Int64 {
        ISOBoxes.first(path: "mdia.mdhd", in: track).map { Int64(ISOBoxes.number($0, $0.first == 1 ? 20 : 12)) } ?? 0
    }

    /// - Parameters:
    ///   - duration: The duration of the track, in units of the movie; nil if endless.
    ///   - media: Units of the track per second; 0 for a track whose edits are left to libavformat.
    private static func edits(_ list: UnsafeRawBufferPointer, movie: Int64, duration: UInt64?, media: Int64) -> EditList? {
        let isWide = list.first == 1
        let size = isWide ? 20 : 12
        let entries = min(Int(ISOBoxes.number(list, 4)), max(0, list.count - 8) / size)
        guard entries > 0 else { return nil }
        func length(_ index: Int) -> UInt64 {
            isWide ? ISOBoxes.wide(list, 8 + size * index) : UInt64(ISOBoxes.number(list, 8 + size * index))
        }
        func start(_ index: Int) -> Int64 {
            let at = 8 + size * index + (isWide ? 8 : 4)
            return isWide ? Int64(bitPattern: ISOBoxes.wide(list, at)) : Int64(Int32(bitPattern: ISOBoxes.number(list, at)))
        }
        func isEmpty(_ index: Int) -> Bool { start(index) == -1 }
        /// The edits in units of the track, if each shows a later part of the media than those before.
        func parts() -> [Part] {
            guard movie > 0, media > 0, entries > 1 else { return [] }
            var (found, end, now, count): ([Part], Int64, Int64, Int) = ([], 0, 0, 0)
            for index in 0..<entries {
                let (product, overflow) = Int64(clamping: length(index)).multipliedReportingOverflow(by: media)
                let part = Part(start: isEmpty(index) ? nil : start(index), length: product / movie)
                now += part.length / 2
                guard !overflow, part.length > 0, now < 1 << 60 else { return [] }
                if let start = part.start {
                    // Edits are rounded to units of the movie.
                    guard start >= max(0, end - media / movie - 1), start < 1 << 60 else { return [] }
                    end = start + part.length
                    count = found.count + 1
                }
                found.append(part)
            }
            let isPlain = entries == 1 || entries == 2 && found[0].start == nil
            return isPlain ? [] : Array(found.prefix(count))
        }
        var shown: UInt64 = 0
        for index in 0..<entries where !isEmpty(index) {
            let (sum, overflow) = shown.addingReportingOverflow(length(index))
            shown = overflow ? .max : sum
        }
        var plays: UInt64? = 1
        if ISOBoxes.number(list, 0) & 1 == 1 {
            let part = length(0)
            // The last play may be partial.
            plays = duration.flatMap { part == 0 ? nil : $0 / part + ($0 % part == 0 ? 0 : 1) }
        }
        return EditList(shown: Int64(clamping: shown), timescale: movie, beginsEmpty: isEmpty(0), plays: plays, parts: parts())
    }
}
