/// What some bytes look like, as far as their beginning tells.
package enum ContentKind: String, Hashable, Sendable, CaseIterable {
    case gif = "GIF"
    case png = "PNG"
    case jpeg = "JPEG"
    case webp = "WebP"
    case avif = "AVIF"
    case heic = "HEIC"
    case jxl = "JPEG XL"
    case bmp = "BMP"
    case tiff = "TIFF"
    case icon = "ICO"
    case svg = "SVG"
    case mp4 = "MP4"
    case quickTime = "QuickTime"
    case webm = "WebM"
    case avi = "AVI"
    case html = "HTML"
    case xml = "XML"
    case json = "JSON"
    case pdf = "PDF"
    case zip = "ZIP"
    case gzip = "gzip"
    case text = "text"
    case empty = "empty"
    case unknown = "unknown"

    /// The end of a sentence such as «The source is …».
    package var phrase: String {
        switch self {
        case .empty: "empty"
        case .unknown: "not a GIF"
        case .text: "not a GIF but looks like text"
        default: "not a GIF but looks like \(rawValue)"
        }
    }
}
