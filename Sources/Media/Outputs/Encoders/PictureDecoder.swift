internal import CMedia

/// Decodes the output of an encoder of this process. Not thread-safe.
final class PictureDecoder {
    // Optional because an initialiser that fails must free what it has allocated.
    private var context: UnsafeMutablePointer<AVCodecContext>?
    private var frame: UnsafeMutablePointer<AVFrame>?

    /// Opens the decoder for an encoder's stream.
    ///
    /// - Throws: ``EncoderSettings/missing`` if libavcodec lacks the decoder, ``TranscodeError/failed(_:code:)`` or
    ///   `outOfMemory`.
    init<Settings: EncoderSettings>(_ encoder: VideoEncoder<Settings>, _: Settings.Type) throws(TranscodeError) {
        guard let codec = Settings.decoder else { throw Settings.missing }
        context = avcodec_alloc_context3(codec)
        frame = av_frame_alloc()
        guard let context, frame != nil else { throw .outOfMemory }
        var parameters = avcodec_parameters_alloc()
        defer { avcodec_parameters_free(&parameters) }
        guard let parameters else { throw .outOfMemory }
        try encoder.describe(parameters)
        guard avcodec_parameters_to_context(context, parameters) >= 0 else { throw .outOfMemory }
        context.pointee.thread_count = 1
        let opened = avcodec_open2(context, codec, nil)
        guard opened >= 0 else { throw .library(.openEncoder, code: opened) }
    }

    deinit {
        av_frame_free(&frame)
        avcodec_free_context(&context)
    }

    /// Decodes a packet, or ends the stream, and passes pictures to `sink` in display order, with the `pts` of their packets.
    func decode(
        _ packet: UnsafeMutablePointer<AVPacket>?, _ sink: (UnsafeMutablePointer<AVFrame>) -> Void
    ) throws(TranscodeError) {
        let sent = avcodec_send_packet(context, packet)
        guard sent >= 0 else { throw .library(.encode, code: sent) }
        while let frame {
            let received = avcodec_receive_frame(context, frame)
            if received == gifreel_averror_again || received == gifreel_averror_eof { return }
            guard received >= 0 else { throw .library(.encode, code: received) }
            sink(frame)
            av_frame_unref(frame)
        }
    }
}

extension EncoderSettings {
    /// libavcodec's decoder for the encoder's output.
    fileprivate static var decoder: UnsafePointer<AVCodec>? {
        guard let codec = avcodec_find_encoder_by_name(encoder) else { return nil }
        // libavcodec's native AV1 decoder needs a graphics card.
        if codec.pointee.id == AV_CODEC_ID_AV1 {
            return avcodec_find_decoder_by_name("libaom-av1") ?? avcodec_find_decoder_by_name("libdav1d")
        }
        return avcodec_find_decoder(codec.pointee.id)
    }
}
