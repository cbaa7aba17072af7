internal import Fetch
internal import Foundation
internal import Renditions
internal import Web

/// `gifreel sign`: prints a path that a service with the same keys answers.
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
        switch Blocking.wait({ await path() }) {
        case .success(let path):
            print(path)
            return 0
        case .failure(let error):
            FileHandle.standardError.write(Data("gifreel: \(error)\n".utf8))
            return 1
        }
    }

    private func path() async -> Result<String, ConfigurationError> {
        do throws(ConfigurationError) {
            let settings = try await SettingsReader(
                file: file, environment: ProcessInfo.processInfo.environment, flags: flags)
            let keys = SigningKeys(try settings.list("signing.keys"))
            guard !keys.isEmpty else { throw ConfigurationError("There is nothing to sign with: signing.keys holds no key.") }
            return .success(try path(keys))
        } catch {
            return .failure(error)
        }
    }

    private func path(_ keys: SigningKeys) throws(ConfigurationError) -> String {
        guard let format = Rendition.Format.named(format) else {
            throw ConfigurationError("There is no format called \(format).")
        }
        var reader = OptionReader(format: format)
        let expires = try expires.map(Self.time)
        let signer = TargetSigner(keys: keys)
        do {
            for option in options { try reader.readPair(option[...]) }
            _ = try reader.finish()
            guard reader.credentials.signature == nil, reader.credentials.expires == nil else {
                throw ConfigurationError("expires and sig are not options to be signed: use --expires.")
            }
            let url = try source.map { try SourceURL($0) }
            guard let path = signer.target(format, reader.credentials.options, of: url, expires: expires) else {
                throw ConfigurationError("An option holds a character that cannot be signed.")
            }
            return path
        } catch let problem as Problem {
            throw ConfigurationError(problem.detail)
        } catch {
            throw ConfigurationError("\(error)")
        }
    }

    private static func time(_ text: String) throws(ConfigurationError) -> Int64 {
        if let seconds = Int64(text), seconds >= 0 { return seconds }
        guard let duration = Quantity.duration(text) else {
            throw ConfigurationError("--expires is “\(text)”: it must be a time from now, such as 1h, or unix seconds.")
        }
        return Int64(Date().timeIntervalSince1970) + duration.components.seconds
    }
}
