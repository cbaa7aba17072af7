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
        guard let found = avcodec_find_encoder_by_name(Settings.encoder), let codec = ClipStream.decoder(of: found.pointee.id)
        else { throw Settings.missing }
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
