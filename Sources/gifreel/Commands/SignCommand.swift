internal import ArgumentParser
internal import Fetch
internal import Foundation
internal import Renditions
internal import Settings
internal import SystemIO
internal import Web

/// `gifreel sign`: prints a signed path for a server with the same keys.
struct SignCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "sign",
        abstract: "Prints a signed path for a source.",
        usage: """
            gifreel sign URL [NAME=VALUE …] [--format mp4] [--expires 1h]
            gifreel sign /MOUNT/PATH [NAME=VALUE …] [--expires 1h]
            gifreel sign --upload [NAME=VALUE …]
            """,
        discussion: """
            Signs with the first of signing.keys, which is best set by GIFREEL_SIGNING_KEYS. The path of a mount names its format \
            itself, such as /media/a.jpg. The URL of an object or a file becomes its path below a mount.
            """)

    @OptionGroup var settings: SettingsArguments

    private static let formats = (Rendition.Format.offered.map(\.rawValue) + [Route.auto]).joined(separator: ", ")

    @Option(help: "The format of the rendition: \(Self.formats). Default: mp4.")
    var format: String?

    @Option(help: "When the signature expires: a time from now (90s, 1h, 7d) or Unix seconds. Default: never.")
    var expires: String?

    @Option(help: "The name of the key to sign with. Default: the first key.")
    var key: String?

    @Flag(help: "Signs an upload (POST), which has no URL.")
    var upload = false

    @Argument(help: "The URL of the source or a path below a mount, and options such as quality=80.")
    var words: [String] = []

    func validate() throws {
        if !upload && words.isEmpty { throw ValidationError("Give the URL of a source, or --upload.") }
    }

    /// Prints the path. Exits with 1 if there is none.
    func run() throws {
        let values = try settings.read().settings
        var keys = try SigningKeys(values.signing)
        guard !keys.isEmpty else {
            throw SettingsError("signing.keys holds no key to sign with; set GIFREEL_SIGNING_KEYS or use --config.")
        }
        if let key {
            guard let named = keys.named(key) else {
                throw SettingsError("signing.keys has no key with the name “\(key)”.")
            }
            keys = named
        }
        var fetch = values.fetch
        let mounts = try ConfiguredMounts(values.mounts, store: values.store.s3)
        mounts.add(to: &fetch)
        let presets = try RenditionPresets(values.presets)
        if !upload, ["/", SourceURL.s3Scheme, SourceURL.fileScheme].contains(where: words[0].hasPrefix) {
            print(try mountedPath(keys, presets, mounts.mounts))
        } else {
            print(try path(keys, presets, fetch.rules))
        }
    }

    private func mountedPath(
        _ keys: SigningKeys, _ presets: RenditionPresets, _ mounts: [String: Mount]
    ) throws(SettingsError) -> String {
        guard format == nil || !words[0].hasPrefix("/") else {
            throw SettingsError("The path of a mount names its format; --format is for URLs.")
        }
        let time = try expires.map(Self.time)
        let options = Array(words.dropFirst()) + (time.map { ["expires=\($0)"] } ?? [])
        let translate = { (problem: Problem) in SettingsError(problem.detail) }
        let signed = try translating(
            try keys.mountTarget(words[0], format ?? "mp4", options, mounts: mounts, presets), to: translate)
        guard let signed else { throw .unsignable }
        guard signed.isPermitted else { throw .excluded(isUpload: false) }
        return signed.path
    }

    private func path(_ keys: SigningKeys, _ presets: RenditionPresets, _ rules: SourceRules) throws(SettingsError) -> String {
        let format = format ?? "mp4"
        // Accept selects the rendition of this route, which has the options of videos.
        let known = format == Route.auto ? .mp4 : Rendition.Format.named(format)
        guard let known else {
            throw SettingsError("There is no format “\(format)”; give one of \(Self.formats).")
        }
        var reader = OptionReader(format: known, named: format, defaults: RenditionDefaults(presets: presets))
        let expires = try expires.map(Self.time)
        do {
            for option in upload ? words[...] : words.dropFirst() {
                guard option.contains("=") else { throw SettingsError("“\(option)” is not an option of the form name=value.") }
                try reader.readPair(option[...])
            }
            guard reader.credentials.signature == nil, reader.credentials.expires == nil else {
                throw SettingsError("expires and sig cannot be given as options; use --expires.")
            }
            let url = upload ? nil : try SourceURL(words[0])
            guard keys.permits(url) else { throw SettingsError.excluded(isUpload: upload) }
            // The addresses and ports of sources are left to the server, whose network may be another one.
            if let url, rules.rights(to: url).needsMount {
                throw SettingsError("A mount with headers has this source; sign its path below the mount.")
            }
            if let url, rules.rights(to: url).refusal == .pattern {
                throw SettingsError(
                    "sources.allow excludes this source, and no mount has it; the server would refuse the request.")
            }
            guard let path = keys.target(format, reader.credentials.options, of: url, expires: expires) else {
                throw SettingsError.unsignable
            }
            try RouteParser.check(path, hasBody: upload, presets)
            return path
        } catch let problem as Problem {
            throw SettingsError(problem.detail)
        } catch {
            throw SettingsError("\(error)")
        }
    }

    /// Reads a time of `--expires`, in seconds since 1970.
    static func time(_ text: String) throws(SettingsError) -> Int64 {
        if let seconds = Int64(text), seconds >= 0 { return seconds }
        guard let duration = Duration(settingText: text) else {
            throw SettingsError("--expires is “\(text)”; it must be a time from now, such as 1h, or Unix seconds.")
        }
        return Int64(Date().timeIntervalSince1970) + duration.components.seconds
    }
}

extension SettingsError {
    fileprivate static let unsignable = SettingsError(RequestSignature.unsignable)

    fileprivate static func excluded(isUpload: Bool) -> SettingsError {
        SettingsError(
            "The hosts of the key exclude \(isUpload ? "uploads" : "this source"); the server would refuse the request.")
    }
}
