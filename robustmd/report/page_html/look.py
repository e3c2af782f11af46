"""How the page looks: one style sheet, readable in light and dark, from 390 pixels on."""

STYLE = """\
:root{color-scheme:light dark;--bg:#fff;--fg:#1b1b1b;--dim:#595959;--line:#d4d4d4;--soft:#f3f4f6;
--link:#0b57a4;--good:#006b4d;--bad:#a63c00;--mark:#fff3c4}
@media(prefers-color-scheme:dark){:root{--bg:#16181c;--fg:#e8e8e8;--dim:#a8adb5;--line:#3a3f47;
--soft:#22262c;--link:#8ec5ff;--good:#5fd3ae;--bad:#ff9d66;--mark:#4a4013}}
*{box-sizing:border-box}
body{margin:0 auto;padding:0 1rem 4rem;max-width:75rem;background:var(--bg);color:var(--fg);
font:15px/1.5 system-ui,sans-serif}
h1{font-size:1.35rem;margin:1rem 0 .2rem}h2{font-size:1.2rem;margin:2.2rem 0 .3rem;
border-top:2px solid var(--line);padding-top:.8rem}h3{font-size:1.02rem;margin:1.6rem 0 .4rem}
p{margin:.4rem 0}a{color:var(--link)}code{font:.88em ui-monospace,monospace;overflow-wrap:anywhere}
.verdict{font-size:1.12rem;font-weight:600;margin:.4rem 0 .6rem}
.dim,figcaption{color:var(--dim);font-size:.88rem}
.scroll{overflow-x:auto;max-width:100%}.scroll:focus-visible{outline:2px solid var(--link)}
table{border-collapse:collapse;font-size:.88rem}
th,td{padding:.25rem .6rem;border-bottom:1px solid var(--line);text-align:left;white-space:nowrap}
th[scope=row]{font-weight:500;position:sticky;left:0;background:var(--bg)}.missing th[scope=row]{
background:var(--mark)}td.num,th.num{text-align:right;font-variant-numeric:tabular-nums}
td.wrap{white-space:normal;min-width:16rem}thead th{border-bottom:2px solid var(--line)}
.worst{background:var(--soft)}.published{color:var(--dim)}
.best{font-weight:700}.second{text-decoration:underline}
th button{all:unset;cursor:pointer;font-weight:600}
th button:focus-visible{outline:2px solid var(--link)}
th[aria-sort=ascending] button::after{content:" \\25B2"}
th[aria-sort=descending] button::after{content:" \\25BC"}
.forest td,.forest th{vertical-align:middle}.forest svg{display:block;width:10.5rem;height:26px}
svg .axis{stroke:var(--dim)}svg .range{fill:var(--line);opacity:.6}
svg .interval{stroke:currentColor;stroke-width:2.5}svg .mean{fill:currentColor}
.better{color:var(--good)}.worse{color:var(--bad)}
.missing{background:var(--mark);padding:.5rem .8rem;margin:.6rem 0}
.figures{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,34rem),1fr));
gap:1.6rem 1.2rem;align-items:start}
figure{margin:0;min-width:0}figure>div{overflow-x:auto}
figure img{display:block;background:#fff;height:auto;max-width:100%;min-width:min(100%,34rem)}
figure.small img{min-width:0}figcaption{max-width:42rem;padding:.3rem 0}
summary{cursor:pointer;font-weight:600;margin:.8rem 0}
@media(max-width:640px){.missing tr,.missing th,.missing td{display:block}
.missing td{padding:.05rem .6rem;border:0}
.missing thead,.forest thead{position:absolute;clip-path:inset(50%)}
.forest,.forest tbody,.forest tr,.forest th,.forest td{display:block;border:0;padding:.05rem 0}
.forest tr{border-bottom:1px solid var(--line);padding:.4rem 0}.forest svg{width:100%}
.forest td[data-name]::before{content:attr(data-name);color:var(--dim);font-size:.8rem}
figure img{max-width:none;width:34rem}figure.small img{width:100%;max-width:100%}}
@media print{.scroll{overflow:visible}}
"""
