<?php

/** The address of a rendition, signed where there is a key. */
function gifreel(string $source, array $options = [], string $format = 'mp4', string $key = '', string $server = ''): string
{
    $url = preg_replace_callback('/[^!#-;=?-\[\]_a-z~]/', fn($byte) => rawurlencode($byte[0]), explode('#', $source)[0]);
    ksort($options);
    $parts = [$format, ...array_map(fn($name, $value) => "$name=$value", array_keys($options), $options)];
    if ($key !== '') {
        $text = implode("\n", [$format, implode(',', array_slice($parts, 1)), $url]);
        $parts[] = 'sig=' . rtrim(strtr(base64_encode(hash_hmac('sha256', $text, $key, true)), '+/', '-_'), '=');
    }
    return $server . '/' . implode(',', $parts) . '/' . $url;
}
