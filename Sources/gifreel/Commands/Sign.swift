internal import Fetch
internal import Foundation
internal import Renditions
internal import Settings
internal import SystemIO
internal import Web

/// `gifreel sign`: prints a signed path for a server with the same keys.
package struct Sign {
    package var file: String?
    package var flags: [String]
    package var format: String
    /// Nil signs an upload.
    package var source: String?
    /// `name=value`.
    package var options: [String]
    /// A time from now, such as `1h`, or seconds since 1970; nil for no end.
    package var expires: String?

    package init(
        file: String?, flags: [String], format: String, source: String?, options: [String], expires: String?
    ) {
        self.file = file
        self.flags = flags
        self.format = format
        self.source = source
        self.options = options
        self.expires = expires
    }

    /// Prints the path on standard output, or on standard error why there is none. Blocks the calling thread.
    ///
    /// - Returns: The exit code.
    package func run() -> Int32 {
        do throws(SettingsError) {
            let settings = try SettingsReader.read(
                file: file, environment: ProcessInfo.processInfo.environment, flags: flags
            ).settings
            let keys = SigningKeys(settings.signing.keys)
            guard !keys.isEmpty else {
                throw SettingsError("signing.keys holds no key to sign with; set GIFREEL_SIGNING_KEYS or use --config.")
            }
            print(try path(keys))
            return 0
        } catch {
            StandardError.write("gifreel: \(error)\n")
            return 1
        }
    }

    private func path(_ keys: SigningKeys) throws(SettingsError) -> String {
        guard let format = Rendition.Format.named(format) else {
            throw SettingsError("There is no format \(format); see gifreel sign --help.")
        }
        var reader = OptionReader(format: format)
        let expires = try expires.map(Self.time)
        let signer = TargetSigner(keys: keys)
        do {
            for option in options { try reader.readPair(option[...]) }
            _ = try reader.finish()
            guard reader.credentials.signature == nil, reader.credentials.expires == nil else {
                throw SettingsError("expires and sig cannot be given as options; use --expires.")
            }
            let url = try source.map { try SourceURL($0) }
            guard let path = signer.target(format, reader.credentials.options, of: url, expires: expires) else {
                throw SettingsError("An option holds a character that cannot be signed.")
            }
            return path
        } catch let problem as Problem {
            throw SettingsError(problem.detail)
        } catch {
            throw SettingsError("\(error)")
        }
    }

    private static func time(_ text: String) throws(SettingsError) -> Int64 {
        if let seconds = Int64(text), seconds >= 0 { return seconds }
        guard let duration = Duration(settingText: text) else {
            throw SettingsError("--expires is “\(text)”; it must be a time from now, such as 1h, or Unix seconds.")
        }
        return Int64(Date().timeIntervalSince1970) + duration.components.seconds
    }
}
