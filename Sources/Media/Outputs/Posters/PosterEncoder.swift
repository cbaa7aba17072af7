internal import CAV

/// Encodes one picture as JPEG, PNG or WebP by libavcodec. Not thread-safe.
struct PosterEncoder: ~Copyable {
    /// The version that becomes part of an object's name. Change it with anything that changes the output bytes.
    static let version = "poster-4"

    private let context: UnsafeMutablePointer<AVCodecContext>
    private let frame: UnsafeMutablePointer<AVFrame>
    private let packet: UnsafeMutablePointer<AVPacket>

    /// - Throws: ``TranscodeError/encoderMissing(_:)``, `outOfMemory`.
    private init(_ poster: PosterCodec, _ output: OutputFormat) throws(TranscodeError) {
        guard let codec = avcodec_find_encoder_by_name(poster.encoder) else { throw .encoderMissing(output) }
        var context = avcodec_alloc_context3(codec)
        var frame = av_frame_alloc()
        var packet = av_packet_alloc()
        guard let madeContext = context, let madeFrame = frame, let madePacket = packet else {
            av_packet_free(&packet)
            av_frame_free(&frame)
            avcodec_free_context(&context)
            throw .outOfMemory
        }
        self.context = madeContext
        self.frame = madeFrame
        self.packet = madePacket
    }

    deinit {
        var context: UnsafeMutablePointer<AVCodecContext>? = context
        var frame: UnsafeMutablePointer<AVFrame>? = frame
        var packet: UnsafeMutablePointer<AVPacket>? = packet
        av_packet_free(&packet)
        av_frame_free(&frame)
        avcodec_free_context(&context)
    }

    /// Encodes the picture, and calls `body` with the bytes of the file.
    ///
    /// - Parameters:
    ///   - output: The format that an error names.
    ///   - quality: 1…100; ignored for PNG.
    static func encode(
        _ picture: borrowing StillPicture, by codec: PosterCodec, as output: OutputFormat, quality: Int,
        _ body: (UnsafeRawBufferPointer) throws(TranscodeError) -> Void
    ) throws(TranscodeError) {
        let encoder = try PosterEncoder(codec, output)
        switch codec {
        case .jpeg: try encoder.prepareJPEG(picture, quality: quality)
        case .png: try encoder.preparePNG(picture)
        case .webp: try encoder.prepareWebP(picture, quality: quality)
        }
        try encoder.run(body)
    }

    // MARK: Formats

    private func prepareJPEG(_ picture: borrowing StillPicture, quality: Int) throws(TranscodeError) {
        let tables = JPEGTables(quality: quality)
        let isSubsampled = quality < JPEGTables.fullChromaQuality
        describe(picture, isSubsampled ? AV_PIX_FMT_YUVJ420P : AV_PIX_FMT_YUVJ444P)
        context.pointee.color_range = AVCOL_RANGE_JPEG
        // Square pixels; with them stated, the encoder writes the JFIF header.
        context.pointee.sample_aspect_ratio = AVRational(num: 1, den: 1)
        // The tables are used unscaled.
        context.pointee.flags |= AV_CODEC_FLAG_QSCALE
        context.pointee.global_quality = JPEGTables.unitScale * FF_QP2LAMBDA
        context.pointee.intra_matrix = try Self.copy(tables.luma)
        context.pointee.chroma_intra_matrix = try Self.copy(tables.chroma)
        av_opt_set(context.pointee.priv_data, "huffman", "optimal", 0)
        try open()
        frame.pointee.color_range = AVCOL_RANGE_JPEG
        frame.pointee.quality = context.pointee.global_quality
        guard let luma = frame.pointee.data.0, let cb = frame.pointee.data.1, let cr = frame.pointee.data.2 else {
            throw .outOfMemory
        }
        JPEGPlanes(
            luma: luma, cb: cb, cr: cr, lumaStride: Int(frame.pointee.linesize.0), cbStride: Int(frame.pointee.linesize.1),
            crStride: Int(frame.pointee.linesize.2)
        ).fill(from: picture, isSubsampled: isSubsampled)
    }

    private func preparePNG(_ picture: borrowing StillPicture) throws(TranscodeError) {
        context.pointee.compression_level = 9
        if let palette = PicturePalette(picture) {
            // Filters make paletted pictures larger.
            describe(picture, AV_PIX_FMT_PAL8)
            try open()
            guard let indices = frame.pointee.data.0, let colors = frame.pointee.data.1 else { throw .outOfMemory }
            palette.write(picture, indices: indices, stride: Int(frame.pointee.linesize.0), colors: colors)
            return
        }
        let hasTransparency = picture.hasTransparency
        describe(picture, hasTransparency ? AV_PIX_FMT_RGBA : AV_PIX_FMT_RGB24)
        av_opt_set(context.pointee.priv_data, "pred", "mixed", 0)
        try open()
        fillPacked(picture, bytesPerPixel: hasTransparency ? 4 : 3, isBlueFirst: false)
    }

    private func prepareWebP(_ picture: borrowing StillPicture, quality: Int) throws(TranscodeError) {
        describe(picture, AV_PIX_FMT_BGRA)
        av_opt_set_double(context.pointee.priv_data, "quality", Double(PosterQuality.webp(quality)), 0)
        try open()
        fillPacked(picture, bytesPerPixel: 4, isBlueFirst: true)
    }

    private func fillPacked(_ picture: borrowing StillPicture, bytesPerPixel: Int, isBlueFirst: Bool) {
        guard let data = frame.pointee.data.0 else { return }
        for y in 0..<picture.height {
            let source = picture.words + y * picture.width
            let row = data + y * Int(frame.pointee.linesize.0)
            for x in 0..<picture.width {
                let word = source[x]
                let pixel = row + x * bytesPerPixel
                pixel[isBlueFirst ? 2 : 0] = UInt8(truncatingIfNeeded: word)
                pixel[1] = UInt8(truncatingIfNeeded: word >> 8)
                pixel[isBlueFirst ? 0 : 2] = UInt8(truncatingIfNeeded: word >> 16)
                if bytesPerPixel == 4 { pixel[3] = UInt8(truncatingIfNeeded: word >> 24) }
            }
        }
    }

    // MARK: libavcodec

    private func describe(_ picture: borrowing StillPicture, _ format: AVPixelFormat) {
        context.pointee.width = Int32(picture.width)
        context.pointee.height = Int32(picture.height)
        context.pointee.pix_fmt = format
        context.pointee.time_base = AVRational(num: 1, den: 1)
        context.pointee.thread_count = 1
        // Leaves the encoder's name and version out of the file.
        context.pointee.flags |= AV_CODEC_FLAG_BITEXACT
    }

    /// Opens the encoder, and allocates the frame.
    private func open() throws(TranscodeError) {
        let opened = avcodec_open2(context, nil, nil)
        guard opened >= 0 else { throw .library(.openEncoder, code: opened) }
        frame.pointee.format = context.pointee.pix_fmt.rawValue
        frame.pointee.width = context.pointee.width
        frame.pointee.height = context.pointee.height
        frame.pointee.pts = 0
        guard av_frame_get_buffer(frame, 0) >= 0 else { throw .outOfMemory }
    }

    private func run(_ body: (UnsafeRawBufferPointer) throws(TranscodeError) -> Void) throws(TranscodeError) {
        var status = avcodec_send_frame(context, frame)
        if status >= 0 { status = avcodec_send_frame(context, nil) }
        if status >= 0 { status = avcodec_receive_packet(context, packet) }
        guard status >= 0 else { throw .library(.encode, code: status) }
        try body(UnsafeRawBufferPointer(start: packet.pointee.data, count: Int(packet.pointee.size)))
    }

    /// A table in memory that the encoder's context frees.
    private static func copy(_ table: [UInt16]) throws(TranscodeError) -> UnsafeMutablePointer<UInt16> {
        guard let memory = av_malloc(table.count * MemoryLayout<UInt16>.stride) else { throw .outOfMemory }
        let target = memory.assumingMemoryBound(to: UInt16.self)
        for (index, value) in table.enumerated() { target[index] = value }
        return target
    }
}
