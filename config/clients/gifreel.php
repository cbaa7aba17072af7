<?php

/** The address of a rendition, signed where there is a key. */
function gifreel(string $source, array $options = [], string $format = 'mp4', string $key = '', string $server = ''): string
{
    $encode = fn($byte) => rawurlencode($byte[0]);
    $url = preg_replace_callback('/[^!#-;=?-\[\]_a-z~]/', $encode, explode('#', $source)[0]);
    $options = array_filter($options, fn($value) => $value !== null);
    ksort($options);
    $pairs = array_map(fn($name, $value) => "$name=$value", array_keys($options), $options);
    $parts = [$format, ...preg_replace_callback('/[^-.0-:=A-Z_a-z~]/', $encode, $pairs)];
    if ($key !== '') {
        $text = implode("\n", [$format, implode(',', str_replace(',', ',,', $pairs)), $url]);
        $parts[] = 'sig=' . rtrim(strtr(base64_encode(hash_hmac('sha256', $text, $key, true)), '+/', '-_'), '=');
    }
    return $server . '/' . implode(',', $parts) . '/' . $url;
}
