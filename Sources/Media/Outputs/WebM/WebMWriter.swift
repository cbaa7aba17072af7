/// Arranges encoded pictures as a WebM file: one VP9 track, an index in front, and alpha as block additions.
///
/// libavformat's muxer writes times only in milliseconds, and its index at the end or in space of a guessed size.
struct WebMWriter {
    /// Alpha, as the additional data of a block (RFC 9559 §5.1.4.1.28.4; WebM container guidelines, alpha channel).
    static let alphaAddition = 1
    /// The largest distance of a block from its cluster, a signed 16-bit number.
    private static let longestCluster = 32_767
    private static let application = "Gifreel"

    let width: Int
    let height: Int
    /// Units per second of the pictures' times.
    let timescale: Int
    let siting: FramePlanes.Siting
    let hasAlpha: Bool
    let chroma: ChromaFormat

    /// Arranges the file.
    ///
    /// - Parameters:
    ///   - pictures: The pictures in display order; the first is a keyframe at 0.
    ///   - end: The end of the last picture, in units of the timeline.
    ///   - rounds: The number of times that the file contains the pictures.
    func layout(_ pictures: [EncodedPicture], end: Int, rounds: Int) -> FileLayout {
        let starts = (0..<rounds).flatMap { round in pictures.map { round * end + $0.time } } + [rounds * end]
        let clock = WebMClock(timescale: timescale, times: starts)
        let ticks = starts.map(clock.ticks)
        let durations = zip(ticks, ticks.dropFirst()).map { $1 - $0 }
        // Chromium gives a block without a duration the duration of another block. If the two differ, a seek shows the picture
        // before the requested one.
        let isEven = durations.allSatisfy { $0 == durations[0] }
        var clusters: [Cluster] = []
        for (index, (start, duration)) in zip(ticks, durations).enumerated() {
            let picture = pictures[index % pictures.count]
            if picture.isKey || start - (clusters.last?.time ?? 0) > Self.longestCluster {
                clusters.append(Cluster(time: start, isKey: picture.isKey))
            }
            let previous = index > 0 ? ticks[index - 1] : 0
            clusters[clusters.count - 1].append(
                block(
                    picture, offset: start - clusters[clusters.count - 1].time, duration: duration,
                    distance: previous - start, namesDuration: index == durations.count - 1 || !isEven))
        }
        return file(
            clusters, clock, duration: clock.ticks(rounds * end), durationOfEach: isEven ? durations[0] * clock.scale : nil)
    }

    /// A group of blocks whose times are relative to the group's time.
    private struct Cluster {
        let time: Int
        let isKey: Bool
        private var blocks = FileLayout()

        init(time: Int, isKey: Bool) {
            self.time = time
            self.isKey = isKey
            blocks.append(EBML.number(.timestamp, time))
        }

        mutating func append(_ block: FileLayout) { blocks.append(block) }

        var head: [UInt8] { EBML.head(.cluster, size: blocks.length) }
        var length: Int { head.count + blocks.length }

        func write(to layout: inout FileLayout) {
            layout.append(head)
            layout.append(blocks)
        }
    }

    /// Returns a block of one picture. Only a group can contain alpha or a duration, which the last block needs.
    private func block(
        _ picture: EncodedPicture, offset: Int, duration: Int, distance: Int, namesDuration: Bool
    ) -> FileLayout {
        let isGroup = namesDuration || picture.alpha != nil
        // Track 1, the time in the cluster, flags: 0x80 marks a keyframe outside a group (§10.1, §10.2).
        let flags: UInt8 = !isGroup && picture.isKey ? 0x80 : 0
        let head: [UInt8] = [0x81, UInt8(truncatingIfNeeded: offset >> 8), UInt8(truncatingIfNeeded: offset), flags]
        var block = FileLayout()
        block.append(EBML.head(isGroup ? .block : .simpleBlock, size: head.count + picture.color.count) + head)
        block.append(packet: picture.color)
        guard isGroup else { return block }
        if let alpha = picture.alpha {
            let addition = EBML.number(.blockAddID, Self.alphaAddition) + EBML.head(.blockAdditional, size: alpha.count)
            let more = EBML.head(.blockMore, size: addition.count + alpha.count) + addition
            block.append(EBML.head(.blockAdditions, size: more.count + alpha.count) + more)
            block.append(packet: alpha)
        }
        block.append(EBML.number(.blockDuration, duration))
        if !picture.isKey { block.append(EBML.signed(.referenceBlock, distance)) }
        var group = FileLayout()
        group.append(EBML.head(.blockGroup, size: block.length))
        group.append(block)
        return group
    }

    /// - Parameters:
    ///   - duration: Of the file, in ticks.
    ///   - durationOfEach: The duration of every picture in nanoseconds; nil if they differ.
    private func file(_ clusters: [Cluster], _ clock: WebMClock, duration: Int, durationOfEach: Int?) -> FileLayout {
        let body = clusters.reduce(0) { $0 + $1.length }
        let information = info(clock, duration: duration)
        let tracks = tracks(durationOfEach: durationOfEach)
        let seekHead = seekHead(information.count, tracks.count)
        // Positions are relative to the contents of the segment (§16). Positions in the index depend on its own length, which
        // may grow with them.
        let before = seekHead.count + information.count + tracks.count
        var cues = cues(clusters, from: before)
        var length = 0
        while cues.count != length {
            length = cues.count
            cues = self.cues(clusters, from: before + length)
        }
        let head = seekHead + information + tracks + cues
        var layout = FileLayout()
        layout.append(header + EBML.head(.segment, size: head.count + body) + head)
        for cluster in clusters { cluster.write(to: &layout) }
        return layout
    }

    private var header: [UInt8] {
        EBML.element(
            .header,
            EBML.number(.version, 1) + EBML.number(.readVersion, 1) + EBML.number(.maxIDLength, 4)
                + EBML.number(.maxSizeLength, 8) + EBML.text(.docType, "webm") + EBML.number(.docTypeVersion, 4)
                + EBML.number(.docTypeReadVersion, 2))
    }

    /// Returns the positions of the parts in front of the clusters, from the lengths of two of them.
    private func seekHead(_ info: Int, _ tracks: Int) -> [UInt8] {
        func entries(from start: Int) -> [UInt8] {
            let positions = [
                (EBMLElement.info, start), (.tracks, start + info), (.cues, start + info + tracks),
            ]
            // Positions always have two bytes, so that the length of the entries is constant.
            return positions.flatMap { element, position in
                EBML.element(
                    .seek,
                    EBML.element(.seekID, element.bytes)
                        + EBML.element(.seekPosition, [UInt8(position >> 8), UInt8(position & 0xff)]))
            }
        }
        let length = EBML.element(.seekHead, entries(from: 0)).count
        return EBML.element(.seekHead, entries(from: length))
    }

    private func info(_ clock: WebMClock, duration: Int) -> [UInt8] {
        EBML.element(
            .info,
            EBML.number(.timestampScale, clock.scale) + EBML.float(.duration, Double(duration))
                + EBML.text(.muxingApp, Self.application) + EBML.text(.writingApp, Self.application))
    }

    private func tracks(durationOfEach: Int?) -> [UInt8] {
        // BT.709, sRGB transfer, limited range (ITU-T H.273). In 4:2:0, chroma is between rows, and at the left or between
        // columns.
        let place = EBML.number(.chromaSitingHorizontal, siting == .left ? 1 : 2) + EBML.number(.chromaSitingVertical, 2)
        let colour = EBML.element(
            .colour,
            EBML.number(.matrixCoefficients, 1) + EBML.number(.bitsPerChannel, 8)
                + EBML.number(.chromaSubsamplingHorizontal, chroma.shift)
                + EBML.number(.chromaSubsamplingVertical, chroma.shift) + (chroma == .half ? place : [])
                + EBML.number(.range, 1) + EBML.number(.transferCharacteristics, 13) + EBML.number(.primaries, 1))
        let video = EBML.element(
            .video,
            EBML.number(.pixelWidth, width) + EBML.number(.pixelHeight, height)
                + (hasAlpha ? EBML.number(.alphaMode, 1) : []) + colour)
        // Without it, FFmpeg takes a file of one or two pictures for one of a thousand per second.
        let usualDuration = durationOfEach.map { EBML.number(.defaultDuration, $0) } ?? []
        let entry =
            EBML.number(.trackNumber, 1) + EBML.number(.trackUID, 1) + EBML.number(.trackType, 1)
            + EBML.number(.flagLacing, 0) + usualDuration
            + (hasAlpha ? EBML.number(.maxBlockAdditionID, Self.alphaAddition) : [])
            + EBML.text(.language, "und") + EBML.text(.codecID, "V_VP9") + video
        return EBML.element(.tracks, EBML.element(.trackEntry, entry))
    }

    /// Returns the index: the clusters that begin with a keyframe.
    private func cues(_ clusters: [Cluster], from start: Int) -> [UInt8] {
        var position = start
        var points: [UInt8] = []
        for cluster in clusters {
            if cluster.isKey {
                let place = EBML.number(.cueTrack, 1) + EBML.number(.cueClusterPosition, position)
                points += EBML.element(
                    .cuePoint, EBML.number(.cueTime, cluster.time) + EBML.element(.cueTrackPositions, place))
            }
            position += cluster.length
        }
        return EBML.element(.cues, points)
    }
}
