#!/usr/bin/env python3
"""Reads an event file with nothing of ours: python3-protobuf, given the documented field numbers, zlib and wave.

    summary_kinds.py FILE...

prints one line a value. tests/whole/summary_kinds.cpp writes the file and says what the lines must be."""
import io
import os
import struct
import sys
import wave
import zlib

try:
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
except ImportError:  # Debian's package belongs to Debian's Python
    if os.path.realpath(sys.executable) == os.path.realpath("/usr/bin/python3") or not os.path.exists("/usr/bin/python3"):
        sys.exit("summary_kinds.py: needs google.protobuf (Debian: python3-protobuf; scripts/deps.sh installs it)")
    os.execv("/usr/bin/python3", ["/usr/bin/python3", *sys.argv])

# message: field name -> number, type; "*" repeated, "|" of the oneof, ".M" a message.
MESSAGES = {
    "Event": "wall_time 1 double, step 2 int64, file_version 3 string|, graph_def 4 bytes|, summary 5 .Summary|, "
             "session_log 7 .SessionLog|, tagged_run_metadata 8 .Tagged|, meta_graph_def 9 bytes|",
    "Summary": "value 1 .Value*",
    "Value": "tag 1 string, simple_value 2 float|, image 4 .Image|, histo 5 .Histo|, audio 6 .Audio|, tensor 8 .Tensor|, "
             "metadata 9 .Metadata",
    "Image": "height 1 int32, width 2 int32, colorspace 3 int32, encoded 4 bytes",
    "Histo": "min 1 double, max 2 double, num 3 double, sum 4 double, sum_squares 5 double, bucket_limit 6 double*, bucket 7 double*",
    "Audio": "sample_rate 1 float, num_channels 2 int64, length_frames 3 int64, encoded 4 bytes, content_type 5 string",
    "Metadata": "plugin_data 1 .Plugin",
    "Plugin": "plugin_name 1 string, content 2 bytes",
    "Tensor": "dtype 1 int32, shape 2 .Shape, string_val 8 bytes*",
    "Shape": "dim 2 .Dim*",
    "Dim": "size 1 int64",
    "SessionLog": "status 1 int32, checkpoint_path 2 string, msg 3 string",
    "Tagged": "tag 1 string, run_metadata 2 bytes",
    "RunMetadata": "step_stats 1 .StepStats",
    "StepStats": "dev_stats 1 .DevStats*",
    "DevStats": "device 1 string, node_stats 2 .NodeStats*",
    "NodeStats": "node_name 1 string, all_start_micros 2 int64, op_end_rel_micros 4 int64, all_end_rel_micros 5 int64, "
                 "timeline_label 8 string, thread_id 10 uint32",
    "GraphDef": "node 1 .Node*",
    "Node": "name 1 string, op 2 string, input 3 string*",
    "HParams": "experiment 2 .Experiment, session_start_info 3 .Start, session_end_info 4 .End",
    "Experiment": "name 6 string, hparam_infos 4 .HParamInfo*, metric_infos 5 .MetricInfo*",
    "HParamInfo": "name 1 string, type 4 int32",
    "MetricInfo": "name 1 .MetricName",
    "MetricName": "group 1 string, tag 2 string",
    "Start": "hparams 1 .HParamEntry*, group_name 4 string",
    "HParamEntry": "key 1 string, value 2 .PbValue",
    "PbValue": "number_value 2 double|, string_value 3 string|, bool_value 4 bool|",
    "End": "status 1 int32",
    "Layout": "version 1 int32, category 2 .Category*",
    "Category": "title 1 string, chart 2 .Chart*, closed 3 bool",
    "Chart": "title 1 string, multiline 2 .Multiline",
    "Multiline": "tag 1 string*",
}


def message_classes():
    F = descriptor_pb2.FieldDescriptorProto
    types = {"double": F.TYPE_DOUBLE, "float": F.TYPE_FLOAT, "int64": F.TYPE_INT64, "int32": F.TYPE_INT32,
             "uint32": F.TYPE_UINT32, "bool": F.TYPE_BOOL, "string": F.TYPE_STRING, "bytes": F.TYPE_BYTES}
    file = descriptor_pb2.FileDescriptorProto(name="events.proto", package="t", syntax="proto3")
    for name, fields in MESSAGES.items():
        message = file.message_type.add(name=name)
        if "|" in fields:
            message.oneof_decl.add(name="what")
        for one in fields.split(", "):
            field_name, number, kind = one.split()
            field = message.field.add(name=field_name, number=int(number), label=F.LABEL_OPTIONAL)
            if kind.endswith("*"):
                field.label = F.LABEL_REPEATED
            if kind.endswith("|"):
                field.oneof_index = 0
            kind = kind.rstrip("*|")
            if kind.startswith("."):
                field.type, field.type_name = F.TYPE_MESSAGE, ".t" + kind
            else:
                field.type = types[kind]
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    get = getattr(message_factory, "GetMessageClass", None) or message_factory.MessageFactory(pool).GetPrototype
    return {name: get(pool.FindMessageTypeByName("t." + name)) for name in MESSAGES}


def masked_crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def records(data):
    at = 0
    while at < len(data):
        n, = struct.unpack_from("<Q", data, at)
        assert struct.unpack_from("<I", data, at + 8)[0] == masked_crc32c(data[at:at + 8]), "checksum of a length"
        payload = data[at + 12:at + 12 + n]
        assert struct.unpack_from("<I", data, at + 12 + n)[0] == masked_crc32c(payload), "checksum of a payload"
        yield payload
        at += 16 + n


def png_pixels(data):
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, packed = 8, b""
    while at < len(data):
        n, kind = struct.unpack_from(">I4s", data, at)
        body = data[at + 8:at + 8 + n]
        assert struct.unpack_from(">I", data, at + 8 + n)[0] == zlib.crc32(kind + body), "checksum of a chunk"
        if kind == b"IHDR":
            width, height, depth, colour = struct.unpack_from(">IIBB", body)
        if kind == b"IDAT":
            packed += body
        at += 12 + n
    step = {0: 1, 4: 2, 2: 3, 6: 4}[colour]
    raw, row, before, out = zlib.decompress(packed), width * step, bytes(width * step), []
    for y in range(height):
        filter_kind, line = raw[y * (row + 1)], bytearray(raw[y * (row + 1) + 1:(y + 1) * (row + 1)])
        for x in range(row):
            left, up, corner = (line[x - step] if x >= step else 0), before[x], (before[x - step] if x >= step else 0)
            guess = left + up - corner
            paeth = min((left, up, corner), key=lambda v: abs(guess - v))
            line[x] = line[x] + (0, left, up, (left + up) // 2, paeth)[filter_kind] & 255
        out += line
        before = bytes(line)
    return f"{height}x{width}x{step} {out}"


def value_line(M, v):
    kind = v.WhichOneof("what")
    plugin = v.metadata.plugin_data
    if kind == "simple_value":
        return f"{v.simple_value}"
    if kind == "histo":
        pairs = " ".join(f"{a:.6g}:{b:g}" for a, b in zip(v.histo.bucket_limit, v.histo.bucket))
        return f"min {v.histo.min:g} max {v.histo.max:g} num {v.histo.num:g} sum {v.histo.sum:g} {pairs}"
    if kind == "image":
        assert v.image.colorspace in (1, 3, 4)
        return png_pixels(v.image.encoded)
    if kind == "audio":
        with wave.open(io.BytesIO(v.audio.encoded)) as w:
            frames = w.readframes(w.getnframes())
            samples = list(struct.unpack(f"<{len(frames) // 2}h", frames))
            return f"{v.audio.content_type} {w.getframerate()} Hz {w.getnchannels()} {samples}"
    content = plugin.content
    text = f"{plugin.plugin_name} dtype {v.tensor.dtype} shape {[d.size for d in v.tensor.shape.dim]}"
    if plugin.plugin_name == "text":
        return f"{text} {[s.decode() for s in v.tensor.string_val]}"
    if plugin.plugin_name == "custom_scalars":
        layout = M["Layout"].FromString(v.tensor.string_val[0])
        return text + "".join(f" {c.title}: {k.title} {list(k.multiline.tag)}" for c in layout.category for k in c.chart)
    data = M["HParams"].FromString(content)
    for e in data.session_start_info.hparams:
        text += f" {e.key}={getattr(e.value, e.value.WhichOneof('what'))}"
    for h in data.experiment.hparam_infos:
        text += f" {h.name}:{h.type}"
    for m in data.experiment.metric_infos:
        text += f" {m.name.group}/{m.name.tag}"
    if data.HasField("session_end_info"):
        text += f" status {data.session_end_info.status}"
    return text


def main():
    M = message_classes()
    for payload in (p for path in sys.argv[1:] for p in records(open(path, "rb").read())):
        e = M["Event"].FromString(payload)
        kind = e.WhichOneof("what")
        if kind == "summary":
            for v in e.summary.value:
                print(e.step, v.tag, value_line(M, v))
        elif kind == "graph_def":
            print(kind, [n.name for n in M["GraphDef"].FromString(e.graph_def).node])
        elif kind == "tagged_run_metadata":
            run = M["RunMetadata"].FromString(e.tagged_run_metadata.run_metadata)
            for d in run.step_stats.dev_stats:
                nodes = [(n.node_name, n.all_end_rel_micros, n.thread_id) for n in d.node_stats]
                print(e.step, e.tagged_run_metadata.tag, d.device, nodes)
        elif kind == "session_log":
            print(e.step, kind, e.session_log.status, repr(e.session_log.checkpoint_path), repr(e.session_log.msg))
        elif kind == "meta_graph_def":
            print(e.wall_time, e.step, kind, e.meta_graph_def)
        else:
            print(kind, e.file_version)


main()
