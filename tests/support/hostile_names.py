"""Sixty names that try to be markup, script, addresses, or the syntax of a renderer."""

from __future__ import annotations

from tests.widgets.test_render_text import HOSTILE

_MORE = (
    "<svg onload=alert(1)>",
    "<svg><script>alert(1)</script></svg>",
    "<svg><a xlink:href='javascript:alert(1)'><text>x</text></a></svg>",
    "<svg><use href='data:image/svg+xml,<svg onload=alert(1)>'/></svg>",
    "<svg><foreignObject><iframe src=javascript:alert(1)></iframe></foreignObject></svg>",
    "<svg><animate onbegin=alert(1) attributeName=x dur=1s>",
    "<math><mtext><img src=x onerror=alert(1)></mtext></math>",
    "<iframe srcdoc='<script>alert(1)</script>'></iframe>",
    "<object data=javascript:alert(1)></object>",
    "<embed src=javascript:alert(1)>",
    "<link rel=stylesheet href=http://example.com/x.css>",
    "<style>*{display:none}</style>",
    "<base href=http://example.com/>",
    "<meta http-equiv=refresh content='0;url=http://example.com/'>",
    "<form action=http://example.com/><button>x</button></form>",
    "<body onload=alert(1)>",
    "<details open ontoggle=alert(1)>",
    "<input autofocus onfocus=alert(1)>",
    "<video><source onerror=alert(1)></video>",
    "<marquee onstart=alert(1)>",
    "<a href='javascript:alert(1)'>x</a>",
    "<a href='data:text/html,<script>alert(1)</script>'>x</a>",
    "<template><script>alert(1)</script></template>",
    "</title><script>alert(1)</script>",
    "</textarea><script>alert(1)</script>",
    "</style><script>alert(1)</script>",
    "</svg><script>alert(1)</script>",
    "</text></g></svg><img src=x onerror=alert(1)>",
    "--><script>alert(1)</script><!--",
    "<![CDATA[<script>alert(1)</script>]]>",
    "<?xml-stylesheet href='http://example.com/x.xsl'?>",
    "<!ENTITY x SYSTEM 'file:///etc/passwd'>&x;",
    "' onmouseover='alert(1)",
    '" style="background:url(javascript:alert(1))',
    "url(http://example.com/x)",
    "expression(alert(1))",
    '}] ; node [URL="http://example.com/"] ; x [label=<<b>x</b>>',
    '\\"; } digraph { a -> b',
    "subgraph x; click n1 href 'http://example.com/'",
    "{{constructor.constructor('alert(1)')()}}",
    "$(alert(1)) %(x)s {x} \\u003cscript\\u003e",
    "__proto__",
    "constructor",
)  # fmt: skip

HOSTILE_NAMES = (*HOSTILE, *_MORE)
