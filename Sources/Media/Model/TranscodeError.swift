internal import CMedia

/// The reason why a source could not be converted. The description is a sentence for clients.
package enum TranscodeError: Error, Equatable, Sendable {
    /// The file has no format that can be decoded.
    case notAnAnimation
    /// The file is a still picture in a format that also has animations.
    case still(SourceFormat)
    /// The file ends before its first frame is complete.
    case incomplete(SourceFormat)
    /// The file's structure yields no frame.
    case corrupt(SourceFormat, Flaw)
    /// The file needs something that the decoders do not have.
    case unsupported(SourceFormat, Lack)
    /// The file has a format that this server does not accept.
    case refused(SourceFormat)
    /// One of ``MediaLimits`` is exceeded.
    case tooLarge(MediaLimits.Name, value: Int, maximum: Int)
    /// libavcodec lacks the encoder of the format.
    case encoderMissing(OutputFormat)
    /// libavcodec lacks the encoder of the codec.
    case codecMissing(VideoCodec)
    /// libavcodec, libavformat or the output failed; `code` is its AVERROR.
    case failed(Stage, code: Int32)
    /// The requested part begins at or after the end of the animation; both in hundredths of a second.
    case startPastEnd(start: Int, duration: Int)
    /// No quality makes a file of at most `maximum` bytes; the smallest one has `smallest`.
    case overBudget(smallest: Int, maximum: Int)
    /// An allocation failed.
    case outOfMemory

    /// The error for an error code of libav. A failed allocation has a case of its own.
    static func library(_ stage: Stage, code: Int32) -> TranscodeError {
        // libx264 reports no reason for a failure. Sizes and options are valid, so an allocation must have failed.
        let isEncoder = stage == .openEncoder || stage == .encode
        let isMemory = code == gifreel_averror_nomem || (isEncoder && code == gifreel_averror_external)
        return isMemory ? .outOfMemory : .failed(stage, code: code)
    }

    /// The flaw of a corrupt file. The raw value crosses the process border.
    package enum Flaw: UInt8, Sendable {
        case header = 1
        case noFrames
        case noCanvas
        case unreadableFrame
        case emptyFrames

        var phrase: String {
            switch self {
            case .header: "its header cannot be read"
            case .noFrames: "it has no frames"
            case .noCanvas: "its canvas and its first frame have no size"
            case .unreadableFrame: "its first frame cannot be read"
            case .emptyFrames: "none of its frames has a pixel"
            }
        }
    }

    /// What a file needs and the decoders lack. The raw value crosses the process border.
    package enum Lack: UInt8, Sendable {
        case container = 1
        case video
        case codec
        case pixels
        case encryption
        case colors

        var phrase: String {
            switch self {
            case .container: "this program was built without a reader of its container"
            case .video: "it has no video"
            case .codec: "its codec is not H.264, HEVC, VP8, VP9 or AV1"
            case .pixels: "its pixel format cannot be read"
            case .encryption: "it is encrypted"
            case .colors: "its colours need Dolby Vision"
            }
        }
    }

    /// The stage that failed. The raw value crosses the process border.
    package enum Stage: UInt8, Sendable {
        case openEncoder = 1
        case encode
        case openMuxer
        case mux
        case write
        case scale

        var phrase: String {
            switch self {
            case .openEncoder: "opening the encoder"
            case .encode: "encoding"
            case .openMuxer: "opening the muxer"
            case .mux: "muxing"
            case .write: "writing"
            case .scale: "scaling"
            }
        }
    }
}

extension TranscodeError {
    /// The same error for a file of another format.
    func of(_ format: SourceFormat) -> TranscodeError {
        switch self {
        case .still: .still(format)
        case .incomplete: .incomplete(format)
        case .corrupt(_, let flaw): .corrupt(format, flaw)
        case .unsupported(_, let lack): .unsupported(format, lack)
        case .refused: .refused(format)
        case .notAnAnimation, .tooLarge, .encoderMissing, .codecMissing, .failed, .startPastEnd, .outOfMemory, .overBudget: self
        }
    }
}

extension TranscodeError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .notAnAnimation: "The file is not an animation or a video."
        case .still(let format): "This \(format.title) has no animation."
        case .incomplete(let format): "The \(format.title) is incomplete: it ends before its first frame does."
        case .corrupt(let format, let flaw): "The \(format.title) is corrupt: \(flaw.phrase)."
        case .unsupported(let format, let lack): "The \(format.title) is not supported: \(lack.phrase)."
        case .refused(let format): "This server takes no \(format.title)."
        case .tooLarge(let name, let value, let maximum):
            "The animation is too large: the \(name.phrase) is \(name.isSum ? "at least " : "")\(value), and the limit is \(maximum)."
        case .encoderMissing(.mp4): "libx264 is missing from libavcodec."
        case .encoderMissing(let format): "The encoder for \(format) is missing from libavcodec."
        case .codecMissing(let codec): "The encoder for \(codec) is missing from libavcodec."
        case .startPastEnd(let start, let duration):
            "The start, \(Self.seconds(start)) s, is not before the animation's end, which is at \(Self.seconds(duration)) s."
        case .overBudget(let smallest, let maximum):
            "The result has at least \(smallest) bytes, and max_bytes allows \(maximum). A smaller width, a lower fps or a part needs fewer."
        case .failed(let stage, let code): "The conversion failed while \(stage.phrase) (code \(code))."
        case .outOfMemory: "The conversion needs more memory than it is allowed."
        }
    }

    private static func seconds(_ hundredths: Int) -> String {
        let fraction = String(hundredths % 100)
        return "\(hundredths / 100)." + (fraction.count == 1 ? "0" : "") + fraction
    }
}
